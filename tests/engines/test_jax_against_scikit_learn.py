"""A cell of a table sweep against scikit-learn's MLP of the same shape, start and optimiser, over 20 trials."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fewfire.papers.pareto.tables import PaperNetwork
from fewfire.sweeps import MemoryStore, Sweep

pytest.importorskip("jax", reason="JAX is not installed (WITH_JAX=1 make test installs it)")
pytest.importorskip("pyarrow", reason="pyarrow is not installed (WITH_SWEEP=1 make test installs it)")

TRIALS, WIDTH, EPOCHS = 20, 30, 40


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_cell_agrees_within_the_noise_of_its_trials(tmp_path):
    """Depth 3, sparse starts, AdamW without decay, batches of 256 by epochs, on the same splits: paired by trial.

    Starts and batches are drawn from the same laws, not the same streams; scikit-learn ends an epoch with a part of a
    batch. A mean difference that a paired t-test finds at 0.01 would mean another algorithm.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8)).round(4)
    labels = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=1500) > 0, "b", "a")
    file = tmp_path / "table.csv"
    rows = "".join(f"{','.join(map(str, row))},{label}\n" for row, label in zip(X.tolist(), labels, strict=True))
    file.write_text("a,b,c,d,e,f,g,h,target\n" + rows)
    sweep = Sweep.from_dict(
        {
            "problem": {"name": "table", "file": str(file)},
            "network": {"start": {"name": "sparse", "s": 2}, "width": WIDTH, "depth": 3},
            "data": {"samples": 0.75},
            "training": {
                "epochs": EPOCHS,
                "batch_size": 256,
                "sampling": "epochs",
                "optimiser": "adamw",
                "learning_rate": 0.003,
                "loss": "logistic",
                "evaluate": 1_000_000,
            },
            "trials": TRIALS,
        }
    )
    store = MemoryStore()
    assert sweep.run(store, engine="jax", executor="inline").failed == 0
    columns = store.columns()
    found = dict(zip(columns["trial"].tolist(), columns["test_error"].tolist(), strict=True))
    pairs = []
    for trial, spec in enumerate(sweep.runs()):
        run = spec.describe().drawn()
        rival = PaperNetwork(WIDTH, 2, "adam", 0.003, EPOCHS, random_state=trial).fit(run.X, run.y)
        pairs.append((found[trial], float(np.mean(rival.predict(run.X_test) != run.y_test))))
    ours, theirs = np.array(pairs).T
    print(f"{ours.mean():.4f} against {theirs.mean():.4f}")
    assert 0.05 < theirs.mean() < 0.4 and ours.std() > 0
    assert ttest_rel(ours, theirs).pvalue > 0.01
    assert abs(ours.mean() - theirs.mean()) < 0.02
