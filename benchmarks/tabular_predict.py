"""How long does a prediction take, in Python and by onnxruntime, and how large is a model on disk?

A table of 18,000 × 10, two classes of which a tenth of the labels are wrong, so that forests grow to full size. Default models; one thread
each. One row, as an array and as a data frame, and 10,000 rows: fewfire in Python, fewfire by onnxruntime (arrays alone), CatBoost, LightGBM,
in turns, medians. Probabilities of both ways must agree within 1e-5. The exit status is 1 where a figure is missed: of CatBoost's time one row in
Python at most 2 times, by onnxruntime once, 10,000 rows 3 times; on disk 10 MB, pickled and as ONNX.

    python benchmarks/tabular_predict.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import copy
import functools
import json
import pickle
import statistics
import sys
import tempfile
import time
from pathlib import Path

import lightgbm
import numpy as np
import onnxruntime
import pandas as pd
from catboost import CatBoostClassifier
from sklearn.datasets import make_classification

import fewfire as ff

PYTHON, ONNX, MANY, MEGABYTES, AGREEMENT = 2.0, 1.0, 3.0, 10.0, 1e-5


def timed(ways, repeats: int) -> dict[str, float]:
    """Median milliseconds of each way, which take turns."""
    taken = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            taken[name].append(1e3 * (time.perf_counter() - begin))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=18_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    chosen = parser.parse_args()
    rows = chosen.rows + 10_000
    X, y = make_classification(
        rows, chosen.columns, n_informative=6, n_clusters_per_class=8, flip_y=0.2, random_state=0
    )
    X, y, fresh = X[: chosen.rows], y[: chosen.rows], X[chosen.rows :]
    ours = ff.TabularClassifier(random_state=0, n_jobs=chosen.jobs).fit(X, y)
    cat = CatBoostClassifier(verbose=0, thread_count=1, random_seed=0, allow_writing_files=False).fit(X, y)
    light = lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbose=-1).fit(X, y)
    frame = pd.DataFrame(fresh[:1], columns=[f"x{column}" for column in range(chosen.columns)])
    of_frames = copy.deepcopy(ours)
    of_frames.feature_names_in_ = np.array(frame.columns, object)  # as a fit to frames leaves them
    print(ours.summary())
    with tempfile.TemporaryDirectory() as folder:
        ours.export_onnx(Path(folder) / "model.onnx")
        cat.save_model(str(Path(folder) / "model.cbm"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(Path(folder) / "model.onnx", options, providers=["CPUExecutionProvider"])
        sizes = {
            "fewfire, pickle": len(pickle.dumps(ours)),
            "fewfire, ONNX": (Path(folder) / "model.onnx").stat().st_size,
            "CatBoost": (Path(folder) / "model.cbm").stat().st_size,
            "LightGBM": len(light.booster_.model_to_string()),
        }
    ways = {
        "fewfire": ours.predict_proba,
        "onnxruntime": lambda table: session.run(["probabilities"], {"X": table}),
        "CatBoost": lambda table: cat.predict_proba(table, thread_count=1),
        "LightGBM": light.predict_proba,
    }
    difference = float(np.abs(ways["onnxruntime"](fresh)[0] - ours.predict_proba(fresh)).max())
    found = {}
    without = {name: way for name, way in ways.items() if name != "onnxruntime"}
    cases = {
        "one row": (ways, fresh[:1], 300),
        "one row of a frame": (without | {"fewfire": of_frames.predict_proba}, frame, 300),
        "10,000 rows": (ways, fresh, 5),
    }
    for name, (some, table, repeats) in cases.items():
        bound = {way: functools.partial(run, table) for way, run in some.items()}
        timed(bound, 3)
        found[name] = timed(bound, repeats)
        print(f"{name}: " + ", ".join(f"{way} {value:.3f} ms" for way, value in found[name].items()))
    megabytes = {name: size / 1e6 for name, size in sizes.items()}
    print(
        "on disk: "
        + ", ".join(f"{name} {size:.1f} MB" for name, size in megabytes.items())
        + f"; ONNX differs by {difference:.1e}"
    )
    cats = {name: times["CatBoost"] for name, times in found.items()}
    ratios = {name: times["fewfire"] / cats[name] for name, times in found.items()}
    ratios["onnxruntime, one row"] = found["one row"]["onnxruntime"] / cats["one row"]
    asked = {"one row": PYTHON, "one row of a frame": PYTHON, "10,000 rows": MANY, "onnxruntime, one row": ONNX}
    kept = all(ratios[name] <= most for name, most in asked.items()) and difference <= AGREEMENT
    kept = kept and max(megabytes["fewfire, pickle"], megabytes["fewfire, ONNX"]) <= MEGABYTES
    print(
        json.dumps(
            {
                "milliseconds": found,
                "megabytes": megabytes,
                "ratios": ratios,
                "asked": asked,
                "difference": difference,
                "kept": kept,
            }
        )
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
