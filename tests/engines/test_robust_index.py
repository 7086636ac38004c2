"""The trainer on a half-space index, and the choice of a trainer."""

import numpy as np
import pytest
from robust_problems import move, problem, verify

from fewfire._errors import InvalidArgument
from fewfire.engines import robust
from fewfire.networks import init


def test_the_index_follows_the_weights(core):
    net, X, rng = problem(6000, 3, 40, threshold=2.0)
    trainer = robust.trainer("index", net, X, 0.1)
    for _ in range(5):
        moved = move(X, 0.1, rng)
        trainer.values(moved)
        trainer.step(moved, rng.normal(size=40), 0.5)
        verify(trainer, moved)
    after = trainer.network()
    changed = (after.hidden != net.hidden).any(axis=1)
    assert 0 < changed.sum() < 6000
    expected = after.active(X)
    report = trainer.index.query_batch(X, 2.0)
    differing = sum(len(np.setxor1d(report.row(i), expected.row(i))) for i in range(40))
    assert differing <= 2  # sums in another order may decide pairs within rounding of the threshold otherwise


def test_work_follows_the_index(core):
    net, X, rng = problem(6000, 3, 40, threshold=2.0)
    trainer = robust.trainer("index", net, X, 0.1)
    trainer.values(X)
    counters = trainer.counters
    assert counters.touched == trainer.index.counters.points
    assert counters.dense_multiply_adds == 6000 * 40 * 3
    before = trainer.counters
    trainer.evaluate(move(X, 0.1, rng))
    spent = trainer.counters - before
    assert spent.active == spent.active_last == trainer.active_counts.sum()
    assert spent.dense_multiply_adds == 2 * 6000 * 40 * 3


def test_the_method_of_the_index_is_chosen_and_weights_do_not_depend_on_it(core):
    net, X, rng = problem(9216, 3, 40, threshold=2.0)
    moved, slopes = move(X, 0.1, rng), rng.normal(size=40)
    trained, spent = {}, {}
    for name in ("scan", "screen", "tree", "auto"):
        trainer = robust.trainer("index", net, X, 0.1, index_method=name)
        assert trainer.index.requested == name
        trainer.step(moved, slopes, 0.5)
        trained[name], spent[name] = trainer.network().hidden, trainer
    for hidden in trained.values():
        np.testing.assert_array_equal(hidden, trained["scan"])
    reported = spent["scan"].counters.active
    assert spent["scan"].counters.multiply_adds == (40 * 9216 + 2 * reported) * 3
    searched = spent["tree"].index.counters
    assert searched.nodes > 0 and searched.points < 40 * 9216 / 2
    assert spent["tree"].counters.multiply_adds == (searched.points + 16 * searched.nodes + 2 * reported) * 3


def test_a_method_of_the_index_is_refused_elsewhere():
    net, X, _ = problem(50, 3, 4, threshold=1.0)
    text = r"index_method must be 'auto' for method='lists'; got 'tree'. Remedy: use method='index'"
    with pytest.raises(InvalidArgument, match=text):
        robust.trainer("lists", net, X, 0.1, index_method="tree")
    with pytest.raises(InvalidArgument, match="method must be one of .*'tree'"):
        robust.trainer("index", net, X, 0.1, index_method="forest")


def test_a_step_asks_again_only_where_examples_have_moved(core):
    net, X, rng = problem(600, 3, 40, threshold=2.0)
    trainer = robust.trainer("index", net, X, 0.1)
    weights = rng.normal(size=40)
    asked = []
    for moved in (X, X, move(X, 0.1, rng)):
        before = trainer.index.counters.queries
        trainer.evaluate(moved)
        trainer.step(moved, weights, 0.5)
        asked.append(trainer.index.counters.queries - before)
    assert asked == [40, 40, 40]  # the weights moved in between, so each pass asks once
    before = trainer.index.counters.queries
    trainer.evaluate(X)
    trainer.step(move(X, 0.1, rng), weights, 0.5)
    assert trainer.index.counters.queries - before == 80


@pytest.mark.parametrize(
    ("start", "expected"), [(init.ntk(activity=0.02), "lists"), (init.ntk(threshold=0.0), "dense")]
)
def test_auto_takes_lists_where_little_is_active(core, start, expected):
    net = start(10, 2000, 0)
    X = np.random.default_rng(0).normal(size=(100, 10)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert robust.trainer("auto", net, X, 0.1).name == expected


def test_without_the_extension_auto_is_dense(without_core):
    net, X, _ = problem(50, 3, 4, threshold=5.0)
    assert robust.trainer("auto", net, X, 0.1).name == "dense"
