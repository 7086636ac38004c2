"""The same run gives the same row on every processor: the cpu engine on ±1 inputs, bit for bit.

`DIGEST` covers 104 runs, networks and checkpoints included. A change of it is a change of the arithmetic:
`ARITHMETIC` (engines/_result.py) goes up with it, so that stores can separate rows of before from rows of after.
"""

import hashlib
import itertools
from dataclasses import fields

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.engines import CpuEngine, History, Phase, Run, Sample, Schedule, Start
from fewfire.engines._result import ARITHMETIC
from fewfire.networks import init, shifted_relu
from fewfire.problems import Parity

LOSSES = ("hinge", "logistic", "square", "absolute")
DIGEST = {2: "0fe0eb13c9f234f8"}


def runs():
    """Both starts, k = 2 to 4, three widths, every loss; activations and samplings; batches of all kinds."""
    batches, inputs = itertools.cycle([32, 8, 50, None]), itertools.cycle([5, 30, 33, 50, 64, 101, 128])
    cases = [(start, k, width, loss, "relu", "replacement")
             for start in (init.dense(), init.sparse(2)) for k in (2, 3, 4) for width in (7, 64, 1000) for loss in LOSSES]  # fmt: skip
    cases += [(init.ntk(activity=0.3), 3, 64, loss, activation, sampling)
              for activation in ("relu6", shifted_relu(0.3)) for sampling in ("replacement", "epochs") for loss in LOSSES]  # fmt: skip
    for seed, (start, k, width, loss, activation, sampling) in enumerate(cases):
        problem, stream = Parity(next(inputs), k), Stream(seed, "same")
        (X, y), (X_test, y_test) = problem.sample(300, stream.child("a")), problem.sample(200, stream.child("b"))
        steps, rate = (80, 0.02) if width < 1000 else (20, 0.002)
        phase = Phase(steps, rate, weight_decay=0.01, batch_size=next(batches))
        schedule = Schedule(phase, loss=loss, evaluate=10, sampling=sampling)
        network = start(problem.n, width, stream).with_parameters(activation=activation)
        yield Run(network, schedule, X, y, X_test, y_test, seed=seed)
    for seed in range(16):  # fresh examples at every step, drawn in stretches
        problem = Parity(20 + seed, 3)
        schedule = Schedule(Phase(400, 0.05, batch_size=32), evaluate=100)
        start, test = Start(init.sparse(2), problem.n, 40, seed), Sample(problem, 200, seed)
        yield Run(start, schedule, source=problem, test=test, seed=seed)


def digest(result):
    network = result.network
    arrays = [network.hidden, network.bias, network.output, np.float64(network.offset)]
    arrays += [getattr(result.history, field.name) for field in fields(History)]
    total = hashlib.sha256(repr(result.counters).encode())
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def test_on_every_instruction_set_and_number_of_threads(core):
    found = {}
    for isa in core.available_isas():
        core.set_isa(isa)
        found[isa] = [digest(result) for result in CpuEngine(2).train(list(runs()))]
    assert len(found["baseline"]) >= 100
    assert all(digests == found["baseline"] for digests in found.values())
    alone = [digest(CpuEngine(1).train([run])[0]) for run in itertools.islice(runs(), 0, None, 5)]
    assert alone == found["baseline"][::5]
    total = hashlib.sha256("".join(found["baseline"]).encode()).hexdigest()[:16]
    assert total == DIGEST[ARITHMETIC], f"the arithmetic has changed: raise ARITHMETIC, and enter {total!r} here"


@pytest.mark.parametrize("batch", [32, 50])
def test_real_inputs_with_and_without_fused_products(core, batch):
    """Equal where there are fused multiply-adds; without, to the 1e-5 after 100 steps that engines promise each other."""
    found = {}
    for isa in core.available_isas():
        core.set_isa(isa)
        X = Stream(3, "real").normal((200, 50)).astype(np.float32)
        schedule = Schedule(Phase(100, 0.02, weight_decay=0.01, batch_size=batch))
        found[isa] = CpuEngine(1).train([Run(init.dense()(50, 64, seed=1), schedule, X, np.sign(X[:, 0]), seed=1)])[0]
    fused = [result.network for isa, result in found.items() if isa != "baseline"]
    assert all(network.equals(fused[0]) for network in fused)
    for network in fused:
        assert np.abs(network.hidden - found["baseline"].network.hidden).max() < 1e-5
