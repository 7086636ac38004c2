"""Which mixture of the members that tabular_members.py stored errs least?

Nothing is fitted: networks are weighed, and trees given their shares, by what was stored of held-out rows. Every line is
a mixture, or a member alone, with its mean error over the sets and the difference to the mixture in use, within 95%
bootstrap bounds over the sets. Asked of the mixture in use: 0.2 points less error than the networks alone at 10%, and
no more at 1%.

    python benchmarks/tabular_mixtures.py JOBS
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit

from fewfire.tabular._mixing import best_temperature, mixing_weights, tree_shares
from tabular_members import NETWORKS, TREES

ALONE, USED = "networks alone", "the mixture in use"


def judge(folder: Path) -> int:
    """Mean test errors and log losses over the sets, of the networks, of each member and of mixtures."""
    jobs: dict[tuple[str, float, int], dict[str, np.lib.npyio.NpzFile]] = {}
    for path in sorted(folder.glob("*.npz")):
        name, fraction, trial, family = path.stem.rsplit("_", 3)
        jobs.setdefault((name, float(fraction), int(trial)), {})[family.replace("-", " ")] = np.load(path)
    found: dict[float, dict[str, dict[tuple[str, int], tuple[float, float]]]] = {}
    for (name, fraction, trial), families in jobs.items():
        y_test = next(iter(families.values()))["y_test"]
        for rule, chances in rules(families).items():
            given = np.clip(np.where(y_test == 1, chances, 1 - chances), 1e-4, 1)
            cell = found.setdefault(fraction, {}).setdefault(rule, {})
            cell[name, trial] = (100 * np.mean((chances > 0.5) != y_test), -np.log(given).mean())
    gains = {}
    for fraction, table in sorted(found.items()):
        print(f"{fraction:g} of the training rows: error in %, its difference to {USED!r} with 95% interval, log loss")
        for rule, cells in table.items():
            pairs = [(key[0], *cells[key], *table[USED][key]) for key in cells if key in table.get(USED, {})]
            if pairs:
                error, loss, low, mean, high = compared(pairs)
                print(
                    f"  {rule:45s} {error:6.2f} {mean:+.2f} ({low:+.2f} to {high:+.2f}) {loss:.4f} {len(pairs):3d} jobs"
                )
                gains[f"{rule}, {fraction:g}"] = round(mean, 3)
    print(json.dumps({"name": "tabular_mixtures", "ratio": None, "against_mixture": gains}))
    return int(gains.get(f"{ALONE}, 0.1", 0.2) < 0.2 or gains.get(f"{ALONE}, 0.01", 0.0) < 0)


def compared(pairs):
    """Mean error and loss over the sets; the difference of the errors to the last but one, its mean within 95% bounds."""
    names = sorted({name for name, *_ in pairs})
    by_set = np.array([np.mean([of[1:] for of in pairs if of[0] == name], axis=0) for name in names])
    differences = by_set[:, 0] - by_set[:, 2]
    draws = differences[np.random.default_rng(0).integers(len(names), size=(4000, len(names)))].mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return by_set[:, 0].mean(), by_set[:, 1].mean(), low, differences.mean(), high


def rules(families) -> dict[str, np.ndarray]:
    """Chances of class 1 at the test rows, by rule."""
    y = next(iter(families.values()))["y"].astype(np.float64)
    mixed = {family: mixture(job, y) for family, job in families.items() if family in NETWORKS}
    said = {}
    for family, job in families.items():
        if family in TREES:
            said |= dict(zip(map(str, job["names"]), zip(job["held"], job["test"], strict=True), strict=True))
    said = {name: (held.astype(np.float64), test.astype(np.float64)) for name, (held, test) in said.items()}
    found = {ALONE if family == "networks" else family: expit(of[1]) for family, of in mixed.items()}
    found |= {f"{name}, alone": test for name, (_, test) in said.items()}
    if "extra trees" not in said or "boosting" not in said:
        return found
    used = ["extra trees", "boosting"]
    for family, of in mixed.items():
        found[USED if family == "networks" else f"{family}, with trees"] = shared(y, of, [said[name] for name in used])
    if "networks" in mixed:
        for name in said:
            others = [name if name.split(",")[0] == of else of for of in used]
            if others != used:
                found[f"{name}, instead"] = shared(y, mixed["networks"], [said[other] for other in others])
    return found


def mixture(job, y):
    """Log odds of a family of networks at the rows and at test rows."""
    held, test = job["held"].astype(np.float64), job["test"].astype(np.float64)
    seen = ~np.isnan(held[0])
    target, weight = y[seen, None], np.ones(seen.sum())
    weights = mixing_weights("logistic", held[:, seen, None], target, weight)
    mixed = weights @ held
    temperature = best_temperature("logistic", mixed[seen, None], target, weight)
    return mixed / temperature, weights @ test / temperature


def shared(y, of_networks, trees):
    """Chances of networks and trees by their shares."""
    seen = ~np.isnan([of_networks[0], *(held for held, _ in trees)]).any(axis=0)
    chances = [np.column_stack([1 - held[seen], held[seen]]) for held, _ in trees]
    shares = tree_shares("logistic", of_networks[0][seen, None], chances, y[seen, None], np.ones(seen.sum()))
    return shares @ np.stack([expit(of_networks[1]), *(test for _, test in trees)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of stored jobs")
    return judge(parser.parse_args().folder)


if __name__ == "__main__":
    sys.exit(main())
