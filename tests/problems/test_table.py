"""A table as a problem: splits, standardised inputs, labels, and what is refused."""

import numpy as np
import pytest

from fewfire._errors import FewfireError, FileFormatError, InvalidArgument
from fewfire._random import Stream
from fewfire.engines import Phase, Schedule
from fewfire.problems import TableFile
from fewfire.sweeps import MemoryStore, RunSpec, Sweep, make_plan
from fewfire.sweeps.run._plan import cost, shape

pytest.importorskip("pyarrow", reason="pyarrow is not installed (WITH_SWEEP=1 make test installs it)")

ROWS = 200


@pytest.fixture
def path(tmp_path):
    """Two numbers, a category, a constant, and a label that the first two decide."""
    rng = np.random.default_rng(0)
    a, b, kind = rng.normal(3, 2, ROWS), rng.normal(size=ROWS), rng.choice(["x", "y"], ROWS)
    lines = [f"{p:.6f},{q:.6f},{k},7,{'yes' if p > 3 else 'no'}" for p, q, k in zip(a, b, kind, strict=True)]
    file = tmp_path / "table.csv"
    file.write_text("a,b,kind,same,label\n" + "\n".join(lines) + "\n")
    return file


def spec(path, **changes):
    table = {
        "problem": {"name": "table", "file": str(path), "label": "label"},
        "network": {"start": {"name": "sparse", "s": 2}, "width": 6},
        "data": {"samples": [1.0, 0.5, 7]},
        "training": {"epochs": 3, "batch_size": 32, "loss": "logistic", "sampling": "epochs", "learning_rate": 0.1},
        "trials": 2,
    }
    return Sweep.from_dict(table | changes)


def test_inputs_are_standardised_and_two_classes_are_signs(path):
    table = TableFile(str(path), label="label")
    X, y = table.sample(180, seed=1)
    held, labels = table.sample(20, Stream(1, "test"))
    everything = np.concatenate([X, held])
    assert X.dtype == np.float32 and table.inputs == 4 and table.outputs == 1
    assert np.allclose(everything.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(everything.std(axis=0), [1, 1, 1, 0], atol=1e-5)
    y = np.concatenate([y, labels])
    assert y.dtype == np.int8 and set(y.tolist()) == {-1, 1}
    assert everything[y == 1, 0].min() > everything[y == -1, 0].max()  # "yes" comes after "no"


def test_each_run_has_a_split_of_its_own(path):
    """A tenth is held out; other streams see the rest, and a smaller sample is the beginning of a larger one."""
    table = TableFile(str(path), label="label")
    parts = [(table.sample(180, seed)[0], table.sample(20, Stream(seed, "test"))[0]) for seed in (0, 1)]
    for X, held in parts:
        assert len({row.tobytes() for row in np.concatenate([X, held])}) == ROWS
    assert not np.array_equal(parts[0][1], parts[1][1])
    assert np.array_equal(table.sample(5, 0, start=3)[0], parts[0][0][3:8])
    assert table.test_rows == 20 and table.training_rows(0.5) == 90
    assert TableFile(str(path), label="label", cap=50).training_rows(1.0) == 50


def test_three_classes_and_numbers(tmp_path):
    file = tmp_path / "three.csv"
    file.write_text("a,label\n" + "".join(f"{i},{i % 3}\n" for i in range(30)))
    table = TableFile(str(file), label="label")
    assert table.outputs == 3 and table.sample(27, 0)[1].dtype == np.int64
    regression = TableFile(str(file), label="label", task="regression")
    assert regression.outputs == 1 and set(regression.sample(27, 0)[1].tolist()) == {0.0, 1.0, 2.0}
    three = {"problem": {"name": "table", "file": str(file), "label": "label"}, "data": {"samples": 20}}
    three["network"] = {"start": "dense", "width": 6}
    with pytest.raises(InvalidArgument, match="loss must be 'cross_entropy' for a network of several outputs"):
        spec(file, **three)
    training = {"steps": 3, "loss": "cross_entropy"}
    assert spec(file, **three, training=training).general


def test_a_spec_holds_the_content_of_the_file(path, tmp_path, monkeypatch):
    sweep = spec(path)
    run = next(sweep.runs())
    digest = TableFile(str(path), label="label").digest
    assert len(digest) == 16 and f'"digest":"{digest}"' in run.canonical
    assert RunSpec.from_json(run.canonical) == run
    monkeypatch.setenv("FEWFIRE_DATA", str(tmp_path))
    assert TableFile("table.csv", label="label").digest == digest
    path.write_text(path.read_text() + "1,2,x,7,no\n")
    assert RunSpec.from_json(run.canonical) == run  # a store is read without the file
    with pytest.raises(
        InvalidArgument, match=f"file must have the content that the spec was made for, of hash {digest}"
    ):
        run.describe()


def test_shares_and_epochs_become_numbers(path):
    sweep = spec(path)
    runs = [sweep.run_at(i) for i in range(3)]
    assert [run.samples for run in runs] == [180, 90, 7]
    assert [run.describe().schedule.steps for run in runs] == [17, 9, 3]  # ⌈3·180/32⌉, ⌈3·90/32⌉, batches of 7
    assert [run.describe().test.rows for run in runs] == [20, 20, 20]
    assert all('"epochs":3' in run.setting and '"steps"' not in run.setting for run in runs)
    assert Sweep.from_dict(sweep.to_dict()) == sweep and sweep.to_dict()["data"][0]["samples"] == 1.0
    assert cost(runs[0]) > cost(runs[1]) and shape(runs[0]) != shape(runs[1])
    assert len(make_plan(sweep).pending) == 6


def test_a_sweep_of_a_table_learns_it(path):
    store = MemoryStore()
    training = {"steps": 400, "loss": "logistic", "learning_rate": 0.1, "sampling": "epochs"}
    state = spec(path, training=training, data={"samples": 1.0}).run(store, executor="inline")
    assert state.failed == 0 and store.columns()["test_error"].max() <= 0.1
    spec(path).run(store, executor="inline")
    assert (store.columns()["status"] == "done").all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "nowhere.csv"}, r"problem\.file must be a file: Parquet, or CSV .*; got 'nowhere\.csv'"),
        ({"task": "ranking"}, r"problem\.task must be one of 'classification', 'regression'; got 'ranking'"),
        ({"cap": 0}, r"problem\.cap must be an integer of at least 1"),
        ({"label": "price"}, r"table\.csv must have rows, feature columns and a column 'price'"),
    ],
)
def test_tables_that_cannot_be(path, change, message):
    with pytest.raises(FewfireError, match=message):
        spec(path, problem={"name": "table", "file": str(path), "label": "label", **change})


def test_what_a_table_has_not_is_refused(path):
    with pytest.raises(
        InvalidArgument, match=r"m must stay within the 180 rows of this part of .*; got 'rows 10 to 190'"
    ):
        TableFile(str(path), label="label").sample(181, 0, start=10)
    with pytest.raises(FewfireError, match="a table has no target beyond its rows"):
        TableFile(str(path), label="label").target(np.zeros((1, 4)))
    with pytest.raises(
        InvalidArgument, match=r"data\.samples must be a number or a share where the problem is a table"
    ):
        spec(path, data={"samples": "online"}, training={"steps": 3})
    with pytest.raises(InvalidArgument, match=r"data\.samples must be a whole number: only tables have rows"):
        spec(path, problem={"name": "parity", "n": 5, "k": 2})
    with pytest.raises(InvalidArgument, match=r"data\.samples must be a finite number in \(0, 1\]; got 1\.5"):
        spec(path, data={"samples": 1.5})
    path.write_text("a,label\n1,0\n,1\n")
    with pytest.raises(FileFormatError, match="has no value in row 2 of the column 'a'"):
        TableFile(str(path), label="label")


def test_epochs_of_schedules():
    schedule = Schedule([Phase(5), Phase(epochs=2, batch_size=64), Phase(epochs=2, batch_size=None)])
    assert [(phase.steps, phase.batch_size) for phase in schedule.of_rows(100).phases] == [(5, 32), (4, 64), (2, None)]
    assert schedule.of_rows(100) is schedule.of_rows(100) and Schedule(Phase(5)).of_rows(None).steps == 5
    with pytest.raises(InvalidArgument, match="steps must be left out where epochs are given; got 5"):
        Phase(5, epochs=2)
    with pytest.raises(InvalidArgument, match="steps must be an integer of at least 1; got 0"):
        Phase()
    with pytest.raises(InvalidArgument, match="epochs must be left out where examples are fresh"):
        schedule.of_rows(None)
