"""Specs: what a file stands for, what is refused, and what a hash depends on."""

import copy
import hashlib
import json
from pathlib import Path

import pytest

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire._random import Stream
from fewfire.engines import Phase, Schedule
from fewfire.networks import init
from fewfire.problems import Junta, Parity
from fewfire.sweeps import RunSpec, Sweep
from fewfire.testing._sweeps import run_spec, tiny, tiny_table

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_is_a_frontier():
    sweep = Sweep.from_toml(ROOT / "examples" / "frontier.toml")
    assert len(sweep) == 600 and sweep.settings == 60 and sweep.trials == 10
    assert [data.samples for data in sweep.data] == [200, 276, 381, 525, 725, 1000]
    assert {start.name for start, _ in sweep.networks} == {"dense", "sparse"}
    assert sweep.schedules[0].stop_error == 0.1 and sweep.name.startswith("Width buys data")


def test_the_canonical_text_and_the_hash_are_fixed_for_good():
    """Changing either loses every store: add new keys so that old specs keep their text."""
    spec = run_spec(trial=3)
    assert spec.canonical == (
        '{"data":{"samples":30,"test_samples":40},"network":{"start":{"name":"dense"},"width":5},'
        '"problem":{"k":2,"n":8,"name":"parity","noise":0.0,"support":[0,1]},'
        '"training":{"evaluate":20,"loss":"hinge","phases":[{"batch_size":8,"decay":"coupled","learning_rate":0.1,'
        '"steps":40,"truncation":0.0,"weight_decay":0.01}],"sampling":"replacement","stop_error":null},'
        '"trial":3,"version":1}'
    )
    assert spec.canonical == json.dumps(json.loads(spec.canonical), sort_keys=True, separators=(",", ":"))
    assert spec.hash == hashlib.blake2b(spec.canonical.encode(), digest_size=16).hexdigest()
    assert json.loads(spec.setting) == {k: v for k, v in json.loads(spec.canonical).items() if k != "trial"}


def test_a_canonical_text_with_an_optimiser_is_read_back():
    spec = run_spec(training=tiny_table()["training"] | {"optimiser": "sgd", "momentum": 0.9})
    assert '"momentum":0.9,' in spec.canonical and '"optimiser":"sgd",' in spec.canonical
    assert RunSpec.from_json(spec.canonical) == spec and RunSpec.from_json(spec.canonical).hash == spec.hash


def test_depth_is_part_of_the_text_of_deeper_networks_alone():
    dense = {"start": "dense"}
    same = [{"width": 5}, {"width": 5, "depth": 1}, {"widths": [5]}]
    assert {run_spec(network=dense | one).hash for one in same} == {run_spec().hash}
    deep = run_spec(network=dense | {"widths": [5, 5, 5]})
    assert deep == run_spec(network=dense | {"width": 5, "depth": 3}) and deep.width == (5, 5, 5)
    assert '"network":{"depth":3,"start":{"name":"dense"},"width":5}' in deep.canonical
    uneven = run_spec(network=dense | {"widths": [5, 4]})
    assert '"network":{"start":{"name":"dense"},"widths":[5,4]}' in uneven.canonical
    for spec in (deep, uneven):
        assert RunSpec.from_json(spec.canonical) == spec and spec.describe().widths == spec.width
    grid = tiny(network={"start": "dense", "widths": [[5, 4], [6, 5, 4]]})
    assert [width for _, width in grid.networks] == [(5, 4), (6, 5, 4)]
    assert Sweep.from_dict(json.loads(json.dumps(grid.to_dict()))) == grid and grid.general
    search = {"axis": "network.width", "low": 4, "high": 40}
    spec = tiny_table(network={"start": "dense", "depth": 2}, data={"samples": 30}, search=search)
    del spec["trials"]
    assert len(Sweep.from_dict(spec).search.lines(Sweep.from_dict(spec))) == 1


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"width": 5, "depth": 0}, "network.depth must be an integer of at least 1"),
        ({"width": 5, "widths": [5, 5]}, "network.width is not a known key"),
        ({"widths": 5}, r"network.widths must be a list of widths; got 5\. Remedy: write \[100, 50\]"),
        ({"widths": [5, 0]}, r"network.widths\[1\] must be an integer of at least 1"),
    ],
)
def test_widths_that_mean_nothing_are_refused(network, message):
    with pytest.raises(InvalidArgument, match=message):
        tiny(network={"start": "dense", **network})


def test_streams_are_those_of_the_run():
    spec = run_spec()
    assert spec.stream("data") == Stream.of_run(spec.canonical, "data")
    keys = {one.stream("data").key for one in tiny().runs()}
    assert len(keys) == len(tiny())


def test_every_run_is_rebuilt_from_its_text():
    many = tiny(
        problem=[
            {"name": "parity", "n": 8, "support": [[0, 1], [2, 5]], "noise": [0, 0.1]},
            {"name": "indexing", "b": 2},
            {"name": "junta", "n": 6, "support": [4, 2], "table": [1, 1, 1, -1]},
            {"name": "correlated_parity", "n": 7, "k": 3},
            {"name": "named_junta", "n": 7, "k": 3, "function": ["random", "majority"], "seed": 5, "noise": 0.1},
            {"name": "half_space", "n": 7, "weights": [[1, 1, 1], [3, -2]], "threshold": 1},
        ],
        network=[
            {"start": ["dense", {"name": "perturbed_sparse", "s": 2}, {"name": "ntk", "activity": 0.1}], "width": 6},
            {"start": {"name": "over_sparse", "k": 2, "s": 3, "strict": False}, "width": [4, 8]},
        ],
        training=[
            {"steps": 10, "loss": ["hinge", "logistic"], "stop_error": 0},
            {"phases": [{"steps": 1, "learning_rate": {"hidden": 1}, "batch_size": 4}, {"steps": [5, 6], "decay": "direct"}]},
        ],
    )  # fmt: skip
    assert many.settings == len(many.problems) * 5 * 2 * 4
    seen = set()
    for spec in many.runs():
        again = RunSpec.from_json(spec.canonical)
        assert again == spec and again.canonical == spec.canonical
        seen.add(spec.hash)
    assert len(seen) == len(many)
    assert Sweep.from_dict(json.loads(json.dumps(many.to_dict()))) == many


def test_learning_with_rounding_needs_a_loss_for_numbers():
    problem = {"name": "learning_with_rounding", "m": 2, "p": 3, "q": 5}
    network = {"start": "dense", "width": 4}
    assert len(tiny(problem=problem, network=network, training={"steps": 2, "loss": "square"})) == 4
    with pytest.raises(
        InvalidArgument,
        match=r"the spec combines LearningWithRounding\(.*\), dense\(\) and .*, which cannot run: y(_test)? must be ±1 for the hinge loss",
    ):
        tiny(problem=problem, network=network)


def test_every_part_of_a_spec_changes_the_hash():
    base = run_spec()
    changes = [
        {"problem": {"name": "parity", "n": 8, "k": 3}}, {"network": {"start": "dense", "width": 6}},
        {"network": {"start": "dense", "width": 5, "depth": 2}}, {"network": {"start": "dense", "widths": [5, 6]}},
        {"network": {"start": {"name": "sparse", "s": 2}, "width": 5}}, {"data": {"samples": 31, "test_samples": 40}},
        {"data": {"samples": 30, "test_samples": 41}}, {"data": {"samples": "online", "test_samples": 40}},
        *({"training": tiny_table()["training"] | one} for one in (
            {"steps": 41}, {"learning_rate": 0.2}, {"weight_decay": 0}, {"batch_size": 9}, {"evaluate": "log"},
            {"loss": "square"}, {"sampling": "epochs"}, {"stop_error": 0.0}, {"truncation": 0.1}, {"decay": "direct"},
            {"optimiser": "adamw"}, {"optimiser": "optax.scale_by_lion"}, {"momentum": 0.5})),
    ]  # fmt: skip
    hashes = {base.hash, run_spec(1).hash, *(run_spec(**change).hash for change in changes)}
    assert len(hashes) == len(changes) + 2


def test_spelling_does_not_change_the_hash():
    """Defaults written out, integers for floats, the order of keys, names and thresholds of success."""
    training = tiny_table()["training"]
    same = [
        {"training": training | {"loss": "hinge", "truncation": -0.0, "sampling": "replacement"}},
        {"training": training | {"optimiser": "sgd", "momentum": 0}},
        {"training": dict(reversed(training.items()))},
        {"training": {"phases": [{k: v for k, v in training.items() if k != "evaluate"}], "evaluate": 20}},
        {"problem": {"name": "parity", "n": 8, "support": [1, 0], "noise": 0}},
        {"name": "other", "success_error": 0.3, "trials": 7},
    ]
    assert {run_spec(**change).hash for change in same} == {run_spec().hash}
    assert run_spec(network={"start": {"name": "sparse", "s": 2, "value": 1}, "width": 5}).hash == run_spec(
        network={"start": {"name": "sparse", "s": 2}, "width": 5}).hash  # fmt: skip


def test_runs_come_trial_by_trial_and_by_number():
    sweep = tiny()
    specs = list(sweep.runs())
    assert [spec.trial for spec in specs] == [0] * 8 + [1] * 8
    assert len({spec.hash for spec in specs}) == len(sweep) == 16 and len({s.setting for s in specs}) == 8
    assert [sweep.run_at(i) for i in range(16)] == specs
    assert list(tiny(trials=5).runs())[:16] == specs  # more trials keep the old runs
    with pytest.raises(InvalidArgument, match="number must be an integer of at least 0 and at most 15; got 16"):
        sweep.run_at(16)


def test_repeated_values_are_one():
    assert len(tiny(network={"start": ["dense", "dense"], "width": [5, 5, 5]}, data={"samples": [30, 30]})) == 2


def test_a_sweep_of_objects():
    sweep = Sweep((Parity(8, 2),), ((init.dense(), 5),), ((30, 40),), (Schedule(Phase(40)),), trials=2)
    assert Sweep.from_dict(sweep.to_dict()) == sweep
    assert isinstance(Sweep.from_dict({**sweep.to_dict(), "problem": {"name": "junta", "n": 3, "support": [1],
                                       "table": [1, -1]}}).problems[0], Junta)  # fmt: skip
    with pytest.raises(InvalidArgument, match="learning_rate must be a finite number"):
        Sweep((Parity(8, 2),), ((init.dense(), 5),), ((30, 40),), (Schedule(Phase(2, [0.1, 0.2])),))
    with pytest.raises(InvalidArgument, match="networks must not be empty"):
        Sweep((Parity(8, 2),), (), ((30, 40),), (Schedule(Phase(2)),))


def changed(path, value):
    spec = copy.deepcopy(tiny_table())
    *parents, last = path.split(".")
    place = spec
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return spec


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("trails", 3, "trails is not a known key; the keys here are name, trials, success_error, problem, network, data, training, search; got 3. Remedy: write 'trials' if that is what was meant."),
        ("problem", None, "problem must be given; got a table without it. Remedy: add problem = … to the spec."),
        ("problem", "parity", "problem must be a table; got 'parity'. Remedy: write it under [problem]."),
        ("problem.name", "party", "problem.name must be one of 'indexing', 'parity', 'correlated_parity', 'staircase', 'junta', 'named_junta', 'half_space', 'learning_with_rounding', 'table'; got 'party'. Remedy: write 'parity' if that is what was meant."),
        ("problem.name", None, "problem.name must be given; got a table without it. Remedy: add name = … to [problem]."),
        ("problem.kk", 2, "problem.kk is not a known key; the keys here are n, k, support, noise; got 2. Remedy: write 'k' if that is what was meant."),
        ("problem.k", 9, "problem.k must be an integer of at least 1 and at most 8; got 9. Remedy: choose k between 1 and n = 8, or pass a support."),
        ("problem.n", None, "problem takes n, k, support, noise; got ['k']. Remedy: missing 1 required positional argument: 'n'."),
        ("problem.noise", "much", "problem.noise must be a finite number in [0, 0.5]; got 'much'. Remedy: it is a flip probability; above 1/2 negate the target."),
        ("network.width", 0, "network.width must be an integer of at least 1; got 0."),
        ("network.width", 10.5, "network.width must be an integer of at least 1; got 10.5."),
        ("network.width", True, "network.width must be an integer of at least 1; got True."),
        ("network.start", "spars", "network.start.name must be one of 'dense', 'ntk', 'sparse', 'perturbed_sparse', 'over_sparse', 'under_sparse', 'symmetric'; got 'spars'. Remedy: write 'sparse' if that is what was meant."),
        ("network.start", {"name": "sparse", "t": 2}, "network.start.init 'sparse' takes s, value; got ['t']. Remedy: missing a required argument: 's'."),
        ("network.start", {"name": "sparse", "s": 0}, "network.start.s must be an integer of at least 1; got 0."),
        ("network.start", {"name": "sparse", "s": 9}, "the spec combines Parity(n=8, k=2, support=(0, 1), noise=0.0), sparse(s=9, value=1.0) and a training set, which cannot run: s must be at most the number of inputs, 8; got 9. Remedy: choose fewer non-zero weights."),
        ("data.samples", "offline", "data.samples must be a number of examples or \"online\"; got 'offline'."),
        ("data.samples", -1, "data.samples must be an integer of at least 1; got -1. Remedy: write \"online\" for fresh ones."),
        ("data.test_samples", 0, "data.test_samples must be an integer of at least 1; got 0."),
        ("training.learnin_rate", 0.1, "training.learnin_rate is not a known key; the keys here are steps, learning_rate, weight_decay, truncation, decay, batch_size, epochs, phases, loss, sampling, evaluate, stop_error, optimiser, momentum; got 0.1. Remedy: write 'learning_rate' if that is what was meant."),
        ("training.lr", 0.1, "training.lr is not a known key; the keys here are steps, learning_rate, weight_decay, truncation, decay, batch_size, epochs, phases, loss, sampling, evaluate, stop_error, optimiser, momentum; got 0.1. Remedy: write 'learning_rate' if that is what was meant."),
        ("training.learning_rate", "fast", "training.learning_rate must be a finite number in (-inf, inf); got 'fast'."),
        ("training.learning_rate", {"hiden": 1}, "training.learning_rate.hiden is not a known key; the keys here are hidden, bias, output, offset; got 1. Remedy: write 'hidden' if that is what was meant."),
        ("training.weight_decay", -1, "training.weight_decay must not be negative; got -1.0."),
        ("training.steps", None, "training.steps must be given; got a table without it. Remedy: add steps = … to [training]."),
        ("training.steps", 0, "training.steps must be an integer of at least 1; got 0."),
        ("training.loss", "hing", "training.loss must be one of 'hinge', 'logistic', 'square', 'absolute', 'cross_entropy'; got 'hing'. Remedy: write 'hinge' if that is what was meant."),
        ("training.optimiser", "adam", "training.optimiser must be one of 'sgd', 'sign_sgd', 'adamw'; got 'adam'. Remedy: write 'adamw' if that is what was meant."),
        ("training.momentum", 1, "training.momentum must be a finite number in [0, 1); got 1."),
        ("training.batch_size", "all", "training.batch_size must be a number of examples or \"full\"; got 'all'."),
        ("training.stop_error", -0.5, "training.stop_error must be a finite number in [0, inf); got -0.5."),
        ("training.phases", [{"steps": 3}], "training must have either phases or the keys of one phase; got ['batch_size', 'learning_rate', 'steps', 'weight_decay']. Remedy: move them into phases."),
        ("training", {"phases": 3}, "training.phases must be a list of tables; got 3. Remedy: write [{steps = 100}]."),
        ("training.evaluate", "often", "training.evaluate must be an integer of at least 1; got 'often'. Remedy: give a number of steps or \"log\"."),
        ("trials", 0, "trials must be an integer of at least 1; got 0."),
        ("success_error", -1, "success_error must be a finite number in [0, inf); got -1."),
        ("name", 3, "name must be a text; got 3."),
    ],
)  # fmt: skip
def test_errors_name_the_key_and_the_choices(path, value, message):
    with pytest.raises(InvalidArgument) as caught:
        Sweep.from_dict(changed(path, value))
    assert str(caught.value) == message


def test_full_batches_do_not_go_with_online_data():
    with pytest.raises(InvalidArgument, match="and online data, which cannot run: batch_size must be a number when"):
        tiny(training={"steps": 3, "batch_size": "full"})
    assert len(tiny(training={"steps": 3, "batch_size": "full"}, data={"samples": 30})) == 8


def test_files_that_are_no_specs(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("trials = \n")
    with pytest.raises(FileFormatError, match=r"bad.toml is not valid TOML: .*line 1"):
        Sweep.from_toml(bad)
    with pytest.raises(
        InvalidArgument, match=r"spec must be a file that can be read \(No such file or directory\); got '.*none.toml'"
    ):
        Sweep.from_toml(tmp_path / "none.toml")
    good = tmp_path / "my frontier.toml"
    good.write_text(
        '[problem]\nname="parity"\nn=8\nk=2\n[network]\nstart="dense"\nwidth=5\n[data]\nsamples=9\n[training]\nsteps=3\n'
    )
    assert Sweep.from_toml(good).name == "my frontier"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("trials", 10**12, "the spec must stand for at most 10,000,000 runs; got a grid of 8,000,000,000,000 (8 cells × 1,000,000,000,000 trials). Remedy: ask for fewer trials or values."),
        ("trials", 2**63, "trials must be an integer of at least −2^63 and less than 2^63; got an integer of 64 bits. Remedy: choose a smaller one."),
        ("trials", [16**5000], "trials[0] must be an integer of at least −2^63 and less than 2^63; got an integer of 20001 bits. Remedy: choose a smaller one."),
        ("network.width", [3, -(2**63) - 1], "network.width[1] must be an integer of at least −2^63 and less than 2^63; got an integer of 64 bits. Remedy: choose a smaller one."),
        ("training.learning_rate", float("inf"), "training.learning_rate must be a finite number; got inf. Remedy: write one between −1.7e308 and 1.7e308."),
        ("name", "\ud800", "name must be Unicode text; got '\\ud800'. Remedy: remove the lone surrogates."),
        ("problem.n", 10**9, "problem.n must be at most 1,000,000; got 1000000000. Remedy: choose fewer inputs."),
        ("training.steps", 2 * 10**12, "training.steps must be at most 1,000,000,000,000 in all phases together; got 2000000000000."),
        ("training", {"steps": 10**12, "evaluate": 1}, 'training.evaluate must be so large that a run of 1,000,000,000,000 steps has at most 1,000,000 records; got 1. Remedy: choose a larger one, or "log".'),
    ],
)  # fmt: skip
def test_work_is_bounded_before_it_starts(path, value, message):
    with pytest.raises(InvalidArgument) as caught:
        Sweep.from_dict(changed(path, value))
    assert str(caught.value) == message


def test_cells_are_counted_over_all_tables():
    table = tiny_table(network={"start": "dense", "width": {"linear": [1, 10_000], "points": 10_000}})
    table["training"]["learning_rate"] = {"linear": [0.0, 1.0], "points": 1000}
    with pytest.raises(InvalidArgument) as caught:
        Sweep.from_dict(table)
    assert str(caught.value) == (
        "the spec must stand for at most 1,000,000 cells; got a grid of 20,000,000 "
        "(10,000 of networks × 2 of data × 1,000 of schedules). "
        "Remedy: list fewer values, or cut it into several sweeps."
    )


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_deep_nesting_is_one_line(tmp_path):
    for depth in (17, 200, 100_000):
        with pytest.raises(
            InvalidArgument, match=r"training.steps.* must not be nested deeper than 16; got a deeper one"
        ):
            Sweep.from_dict(changed("training.steps", nested(depth)))
    spec = tmp_path / "deep.toml"
    for text in ("a = " + "[" * 10_000 + "]" * 10_000, "a = " + "{b = " * 10_000 + "1" + "}" * 10_000):
        spec.write_text(text)
        with pytest.raises(FileFormatError, match=r"deep.toml is no spec: it is nested deeper than 16.$"):
            Sweep.from_toml(spec)
    spec.write_text("a." * 10_000 + "b = 1")
    with pytest.raises(InvalidArgument, match="must not be nested deeper than 16"):
        Sweep.from_toml(spec)
    with pytest.raises(FileFormatError, match="the text of a run is not valid JSON: "):
        RunSpec.from_json("[" * 100_000)


def test_hostile_files(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text("trials = " + "9" * 5000)
    with pytest.raises(FileFormatError, match="spec.toml is not valid TOML: Exceeds the limit"):
        Sweep.from_toml(spec)
    with pytest.raises(FileFormatError, match="/dev/zero is no spec: it has more than 16,000,000 bytes"):
        Sweep.from_toml("/dev/zero")
    with pytest.raises(InvalidArgument, match=r"must be a file that can be read \(embedded null byte\)"):
        Sweep.from_toml("a\0b")
    with pytest.raises(InvalidArgument, match=r"the spec must be a table; got \[1\]."):
        Sweep.from_dict([1])
    for text in ("{}", "[1]", '{"data":{}}', "", "nonsense", '{"trial":1e999}'):
        with pytest.raises((InvalidArgument, FileFormatError)):
            RunSpec.from_json(text)


def test_a_file_whose_name_is_no_text_gives_the_sweep_a_name_that_is(tmp_path):
    spec = tmp_path / "\udcff.toml"
    spec.write_text(
        '[problem]\nname="parity"\nn=8\nk=2\n[network]\nstart="dense"\nwidth=5\n[data]\nsamples=9\n[training]\nsteps=3\n'
    )
    assert Sweep.from_toml(spec).name == "?"
