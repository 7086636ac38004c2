"""Jobs of a fit, networks and trees: results, errors, pruning and BLAS for any number of threads."""

import signal
import threading
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_info, threadpool_limits

import fewfire as ff
from fewfire.tabular import AdamW
from fewfire.tabular._encodings import mapped
from fewfire.tabular._ensemble import Variant, finalists
from fewfire.tabular._training import ENOUGH, Rung, Stop, SuccessiveHalving, run_jobs

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


class Together:
    """In the place of a GPU: all tasks that are ready, at a time."""

    def __init__(self, takes=lambda task: True):
        self.seen, self.takes = [], takes

    def run(self, tasks):
        self.seen.append(len(tasks))
        return [task() for task in tasks]


def counting(start, rounds):
    """A job of so many rounds: each adds up what its three tasks return for the sum so far."""
    total = start
    for _ in range(rounds):
        total = sum((yield [partial(pow, total, exponent, 10**9 + 7) for exponent in range(3)]))
    return total


@THREADS
def test_jobs_return_what_they_would_alone(threads):
    alone = [run_jobs([counting(start, rounds)], 1).found[0] for start, rounds in enumerate((3, 0, 7, 1))]
    assert run_jobs([counting(start, rounds) for start, rounds in enumerate((3, 0, 7, 1))], threads).found == alone
    assert alone[1] == 1


def test_free_threads_take_tasks_of_other_jobs():
    barrier = threading.Barrier(2, timeout=20)

    def waiting():
        yield [barrier.wait]  # ends only together with the other job's

    assert run_jobs([waiting(), waiting()], 2).found == [None, None]


@THREADS
def test_the_error_is_that_of_the_first_job_that_fails(threads):
    closed = []

    def failing(number, rounds):
        try:
            yield from counting(number, rounds)
            yield [partial(int, f"job {number}")]
        finally:
            closed.append(number)

    with pytest.raises(ValueError, match="job 1"):
        run_jobs([counting(0, 9), failing(1, 5), failing(2, 0), failing(3, 20)], threads)
    assert sorted(closed) == [1, 2, 3]


@THREADS
def test_an_error_of_a_decision_is_raised_too(threads):
    def deciding():
        yield [int]
        raise ArithmeticError("decided")

    with pytest.raises(ArithmeticError, match="decided"):
        run_jobs([counting(0, 2), deciding()], threads)


def slow_job(begun, may_end, closed):
    """A job of one task that ends when it may, as that of a large tree would late."""
    try:
        yield [lambda: begun.set() or may_end.wait(20)]
    finally:
        closed.set()


def raise_soon(begun, what):
    """A job that raises as soon as the other has begun."""
    yield [partial(begun.wait, 20)]
    yield [what]


def diverge():
    raise ArithmeticError("diverged")


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize(("what", "error"), [(diverge, ArithmeticError), (interrupt, KeyboardInterrupt)])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_neither_errors_nor_interrupts_wait_for_other_jobs(what, error, on_gpu):
    begun, may_end, closed = (threading.Event() for _ in range(3))
    job, other = raise_soon(begun, what), slow_job(begun, may_end, closed)
    with pytest.raises(error):
        run_jobs([job], 2, None, [other], Together(lambda task: task is what) if on_gpu else None)
    assert closed.is_set() and not may_end.is_set()  # its task is still under way, though nothing waits for it
    may_end.set()


@pytest.mark.parametrize("threads", [2, 5])
def test_many_jobs_on_threads_are_as_many_as_alone(threads):
    alone = [run_jobs([counting(start, start % 40)], 1).found[0] for start in range(60)]
    assert run_jobs([counting(start, start % 40) for start in range(60)], threads).found == alone


def test_blas_has_one_thread_meanwhile_and_is_left_as_it_was():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def looking():
        inner = run_jobs([counting(0, 1)], 1).found  # a fit inside another's end leaves the limit to the other
        return (yield [threads])[0], inner

    with threadpool_limits(2, "blas"):
        before = threads()
        assert run_jobs([looking()], 2).found[0] == ({1}, [1])
        assert threads() == before


def test_fits_are_the_same_for_every_number_of_jobs():
    X, y = make_classification(160, 5, random_state=0)
    settings = {"hidden": (16, 8), "optimiser": AdamW(0.01, epochs=6), "random_state": 0}
    one, two, many = (ff.TabularClassifier(**settings, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 40))
    assert one.mixing_weights_ == two.mixing_weights_ == many.mixing_weights_
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    assert np.array_equal(one.decision_function(X), many.decision_function(X))
    assert one.validation_curve_ == two.validation_curve_


def climbing(value, times, log):
    """A job that shows a value at so many rungs, unless it is pruned."""
    for number in range(times):
        yield [partial(log.append, value)]
        if not (yield Rung((value, number))):
            return "pruned"
    return "done"


@THREADS
def test_jobs_wait_at_rungs_and_what_all_have_shown_decides(threads):
    seen = []

    def prune(shown):
        seen.append(list(shown))
        return [value != "b" for value in "abc"]

    log = []
    jobs = [climbing("a", 2, log), climbing("b", 9, log), climbing("c", 1, log)]
    assert run_jobs(jobs, threads, prune).found == ["done", "pruned", "done"]
    assert seen == [[("a", 0), ("b", 0), ("c", 0)], [("a", 1), "pruned", "done"]]
    assert sorted(log) == ["a", "a", "b", "c"]


@THREADS
def test_an_error_before_a_rung_is_raised(threads):
    def failing():
        yield [partial(int, "no number")]

    with pytest.raises(ValueError, match="no number"):
        run_jobs([climbing("a", 2, []), failing(), climbing("c", 2, [])], threads, lambda shown: [True] * 3)


def test_the_better_half_goes_on_and_each_group_that_has_weight():
    def stop(loss, rows=ENOUGH):
        return Stop(loss, np.full((rows, 1), loss))

    halving = SuccessiveHalving(lambda outputs: np.array([0.5, 0.5, 0.0, 0.0, 0.0]), 5)
    assert halving([stop(loss) for loss in (0.9, 0.3, 0.5, 0.4, 0.8)]) == [True, True, True, True, False]
    halving = SuccessiveHalving(lambda outputs: np.array([0.0, 1.0, 0.0, 0.0, 0.0]), 5)
    assert halving([stop(loss) for loss in (0.9, 0.3, 0.5, 0.4, 0.8)]) == [False, True, True, True, False]
    assert halving([stop(loss) for loss in (0.1, 0.3, 0.2, 0.4, 0.8)]) == [
        False,
        True,
        True,
        False,
        False,
    ]  # once out, out
    assert SuccessiveHalving(lambda outputs: np.ones(1), 1)([stop(0.5)]) == [True]
    assert SuccessiveHalving(lambda outputs: np.eye(2)[0], 2)([stop(0.1, 499), stop(0.9, 499)]) == [
        True,
        True,
    ]  # too few to decide


def test_worse_variants_stop_early_and_the_rest_goes_on():
    X, y = make_classification(ENOUGH, 4, n_informative=2, n_redundant=0, random_state=0)
    settings = {"hidden": (16,), "members": 2, "random_state": 0, "early_stopping": 30}
    model = ff.TabularClassifier(**settings, optimiser=AdamW(0.01, epochs=25), warm_start=True).fit(X, y)
    epochs = [len(group.curves.validation) for group in model._ensemble.groups.values()]
    assert max(epochs) == 25
    assert len(model.validation_curve_) in (10, 20, 25)


def test_every_encoding_has_a_finalist():
    losses = {
        Variant("rank", "strong"): 0.1,
        Variant("rank", "mild"): 0.2,
        Variant("rank", "none"): 0.25,
        Variant("periodic", "mild"): 0.5,
        Variant("periodic", "none"): 0.6,
    }
    ranked = list(losses)
    assert finalists(losses, 3) == [ranked[0], ranked[1], ranked[3]]
    assert finalists(losses, 2) == [ranked[0], ranked[3]]
    assert finalists(losses, 1) == ranked[:1]
    assert finalists(losses, 9) == ranked


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("items", [0, 3, 4, 5, 50])
def test_items_are_mapped_in_their_order(items, threads):
    assert mapped(lambda item: item * item, list(range(items)), threads) == [item * item for item in range(items)]


def test_a_gpu_gets_all_tasks_that_are_ready():
    def job(rounds):
        total = sum((yield [lambda: 0]))  # on a thread, which the GPU waits for
        for number in range(rounds):
            total += sum((yield [partial(pow, number, 1), partial(pow, 1, 1)]))
        return total

    gpu = Together(lambda task: isinstance(task, partial))
    assert run_jobs([job(2), job(3)], 2, gpu=gpu).found == [3, 6]
    assert gpu.seen == [4, 4, 2]
