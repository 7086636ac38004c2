"""What other settings would gain: variants of the default fit beside it, on the same draws of the eleven sets.

Settings are chosen by draws that the documentation's tables do not use, trials from 100 on, and small differences take
many: ten draws of eleven sets tell 0.06 points from none, two standard errors over the draws. A GPU makes that a matter
of minutes: 110 fits of at most 20,000 rows take one on an H200 with 16 cores.

Every fit is a job whose result is a line of a file at once, and a stopped run goes on. A variant may be about tables of
few or of many rows alone; the others it does not fit, and there it counts as the default. `table` prints, for each
variant, its mean error less the default's on the same draws in points of %, the standard error over the draws and the
95% bootstrap interval over the sets, the same difference in log loss, and the seconds of its fits over the default's.

    python benchmarks/tabular_members.py convert --data FOLDER_OF_PARQUET --out SETS
    python benchmarks/tabular_settings.py measure --data SETS --results FILE --fractions 0.1,1 --trials 100-109 \\
        --variants "8 networks; 7/8" --engine torch --workers 7
    python benchmarks/tabular_settings.py table --results FILE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from tabular_protocol import CAP, add_limits, carry_out, interval, load, read  # first: says how many threads BLAS has

# isort: split
import numpy as np

from fewfire import SparseInitClassifier
from fewfire.experiments.tabular._calibration import calibration
from fewfire.problems.tabular import split, training_rows
from fewfire.tabular import AdamW, _settings, _trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = _settings.TRIAL_ROWS  # rows; of more, a trial on so many chooses the variants of the inputs


@dataclass(frozen=True)
class Variant:
    """Settings other than the default's, for tables of more rows than `above` and at most `below`.

    `folds` says into how many parts so many rows are divided, of which each network leaves one out; a trial has four.
    `networks` are those of a finalist; there are as many trees in all, however many they are. `constants` are those
    of fewfire.tabular by "module.NAME", `arguments` the estimator's.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    folds: Callable[[int], int] = _settings.folds_of
    networks: int = 4
    constants: dict[str, Any] = field(default_factory=dict)
    above: float = 0
    below: float = inf

    def touches(self, rows: int) -> bool:
        """Whether a table of so many rows is fitted otherwise than by default."""
        return self != Variant() and self.above < rows <= self.below

    @contextmanager
    def applied(self, rows: int) -> Iterator[dict[str, Any]]:
        """The arguments of an estimator for so many rows, while fewfire has the variant's constants."""
        if not self.touches(rows):
            yield {}
            return
        folds, networks, counted = self.folds, self.networks, _trees.tree_count
        changes = dict(self.constants)
        changes["_ensemble.folds_of"] = lambda of: min(of, folds(of) if of > MANY or rows <= MANY else _settings.FOLDS)
        if networks != 4:
            changes["_trees.tree_count"] = lambda of: max(4, -(-4 * counted(of) // networks))
        with ExitStack() as stack:
            for name, value in changes.items():
                stack.enter_context(mock.patch(f"fewfire.tabular.{name}", value))
            yield {"members": networks} | self.arguments


def parts(count: int) -> Callable[[int], int]:
    """So many folds, of however many rows."""
    return lambda rows: count


def cooling(share: float, first: float) -> Variant:
    """Another length of the cool-down, as a share of the epochs up to the best, and the pace at its beginning."""
    return Variant(constants={"_cooling.SHARE": share, "_cooling.FIRST": first})


def thousands(rows: int) -> int:
    """As many folds as hold a thousand rows each, four at least and sixteen at most."""
    return min(16, max(4, rows // 1000))


EIGHTHS = Variant(folds=parts(8), above=MANY)
VARIANTS = {
    "default": Variant(),
    "members=8": Variant({"members": 8}),
    "no cool-down": Variant(constants={"_ensemble.Ensemble._cool_down": lambda *given: None}),
    "a cool-down of a quarter, from 0.5": cooling(1 / 4, 0.5),
    "a cool-down of a third, from 0.75": cooling(1 / 3, 0.75),
    "a cool-down of a half, from 0.5": cooling(1 / 2, 0.5),
    "a cool-down of a half, from 1": cooling(1 / 2, 1.0),
    "6 networks on 5/6": Variant(folds=parts(6), networks=6, above=MANY),
    "8 networks": Variant(networks=8, above=MANY),
    "7/8": EIGHTHS,
    "7/8, 6 networks": replace(EIGHTHS, networks=6),
    "7/8, 8 networks": replace(EIGHTHS, networks=8),
    "7/8, (512, 128) wide": replace(EIGHTHS, arguments={"hidden": (512, 128)}),
    "7/8, three finalists": replace(EIGHTHS, constants={"_ensemble.FINALISTS": 3}),
    "7/8, beyond 5000 rows 15/16": Variant(folds=lambda rows: 8 if rows <= 5000 else 16, above=MANY),
    "1000 rows held out by each": Variant(folds=thousands, above=5000),
    "the same, patience of 5": Variant(folds=thousands, constants={"_settings.PATIENCE_OF_MANY": 5}, above=5000),
    "few rows: 6 networks": Variant(networks=6, below=MANY),
    "few rows: 8 networks": Variant(networks=8, below=MANY),
    "few rows: 7/8": Variant(folds=parts(8), below=MANY),
    "few rows: 6 networks on 5/6": Variant(folds=parts(6), networks=6, below=MANY),
    "few rows: 8 networks on 7/8": Variant(folds=parts(8), networks=8, below=MANY),
    "few rows: (512, 64) wide": Variant({"hidden": (512, 64)}, below=MANY),
    "few rows: labels smoothed by 0.3": Variant({"label_smoothing": 0.3}, below=MANY),
    "few rows: rate 0.004": Variant({"optimiser": AdamW(learning_rate=0.004)}, below=MANY),
    "few rows: patience of 16": Variant(constants={"_settings.PATIENCE": 16}, below=MANY),
    "few rows: 200 extra trees": Variant(constants={"_trees.tree_count": lambda _: 200}, below=MANY),
    "few rows: boosting of 16 leaves": Variant(
        constants={"_trees.SMALL": replace(_trees.SMALL, leaves=16)}, below=MANY
    ),
}
"""By name; "7/8" is the share of the rows that each network trains on."""


def job(folder: str, engine: str, variant: str, name: str, fraction: float, trial: int) -> list[dict]:
    """Fit a variant to a draw of a set; its result."""
    data = load(folder, name)
    parts = split(data, trial, fraction, CAP)
    with VARIANTS[variant].applied(len(parts.y_train)) as arguments, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobs = 4 if engine == "torch" else 1  # trees grow beside the device
        model = SparseInitClassifier(random_state=trial, engine=engine, n_jobs=jobs, **arguments)
        begin = time.perf_counter()
        model.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - begin
    chances = model.predict_proba(parts.X_test)
    told = {"variant": variant, "set": name, "fraction": fraction, "trial": trial, "seconds": seconds}
    wrong = float(np.mean(chances.argmax(axis=1) != parts.y_test))
    return [told | {"rows": len(parts.y_train), "error": wrong} | calibration(chances, parts.y_test)]


def measure(options: argparse.Namespace) -> int:
    """Run the jobs that the file lacks, draw by draw."""
    chosen = [name.strip() for name in options.variants.split(";")]
    unknown = [name for name in chosen if name not in VARIANTS]
    if unknown:
        raise SystemExit(f"--variants has no {unknown[0]!r}. Remedy: {'; '.join(VARIANTS)}")
    first, last = map(int, (options.trials or "100-109").split("-"))
    sizes = {path.stem: len(np.load(path)["y"]) for path in options.data.glob("*.npz")}
    known = {(of["variant"], of["set"], of["fraction"], of["trial"]) for of in read(options.results)}
    jobs = [
        (variant, name, fraction, trial)
        for trial in range(first, last + 1)
        for fraction in map(float, options.fractions.split(","))
        for variant in dict.fromkeys(["default", *chosen])
        for name in sorted(sizes, key=lambda name: -sizes[name])
        if variant == "default" or VARIANTS[variant].touches(training_rows(sizes[name], fraction, CAP))
        if (variant, name, fraction, trial) not in known
    ]
    return carry_out(partial(job, str(options.data), options.engine), jobs, options)


def compared(results: list[dict], variant: str, fraction: float) -> dict | None:
    """A variant beside the default on the draws that have all of both; None if there are none."""
    found: dict[str, dict[tuple[str, int], dict]] = {"default": {}, variant: {}}
    for of in results:
        if of["fraction"] == fraction and of["variant"] in found:
            found[of["variant"]][of["set"], of["trial"]] = of
    default, ours = found["default"], found[variant]
    sets, touched = sorted({name for name, _ in default}), {name for name, _ in ours}
    trials = [
        trial
        for trial in sorted({trial for _, trial in default})
        if all((name, trial) in default for name in sets) and all((name, trial) in ours for name in touched)
    ]
    if not trials or not touched:
        return None
    whole = {(name, trial): ours.get((name, trial), default[name, trial]) for name in sets for trial in trials}

    def values(of: dict[tuple[str, int], dict], what: str) -> np.ndarray:
        return np.array([[of[name, trial][what] for trial in trials] for name in sets])

    errors = 100 * (values(whole, "error") - values(default, "error"))
    spread = errors.var(axis=1, ddof=1).sum() / len(trials) if len(trials) > 1 else np.nan
    return {
        "trials": len(trials),
        "default": 100 * float(values(default, "error").mean()),
        "error": errors.mean(),
        "draws": sqrt(spread) / len(sets),
        "sets": interval(errors.mean(axis=1))[1:],
        "log_loss": float((values(whole, "log_loss") - values(default, "log_loss")).mean()),
        "seconds": float(values(whole, "seconds").sum() / values(default, "seconds").sum()),
    }


def alone(results: list[dict], fraction: float) -> tuple[int, float, float]:
    """The default: draws that have every set, its mean error in % on them, and the standard error over them."""
    draws: dict[int, list[float]] = {}
    for of in results:
        if (of["variant"], of["fraction"]) == ("default", fraction):
            draws.setdefault(of["trial"], []).append(100 * of["error"])
    most = max(map(len, draws.values()))
    means = [float(np.mean(errors)) for errors in draws.values() if len(errors) == most]
    return len(means), float(np.mean(means)), float(np.std(means, ddof=1)) / sqrt(len(means)) if len(means) > 1 else inf


def table(options: argparse.Namespace) -> int:
    """Print what the default has, and what each variant of the file changes."""
    first, last = map(int, options.trials.split("-")) if options.trials else (0, inf)
    results, told = [of for of in read(options.results) if first <= of["trial"] <= last], {}
    for fraction in sorted({of["fraction"] for of in results if of["variant"] == "default"}):
        count, mean, error = alone(results, fraction)
        told[f"default, {fraction:g}"] = round(mean, 2)
        print(
            f"\n{100 * fraction:g}% of the rows; the default on {count} draws: {mean:.2f} (standard error {error:.2f})"
        )
        print("\n| what | draws | default | error | over sets | log loss | seconds |")
        print(f"|{' --- |' * 7}")
        for variant in (name for name in VARIANTS if name != "default"):
            of = compared(results, variant, fraction)
            if of is None:
                continue
            told[f"{variant}, {fraction:g}"] = round(of["error"], 3)
            low, high = of["sets"]
            print(
                f"| {variant} | {of['trials']} | {of['default']:.2f} | {of['error']:+.2f} ({of['draws']:.2f}) "
                f"| {low:+.2f} to {high:+.2f} | {of['log_loss']:+.4f} | {of['seconds']:.2f} |"
            )
    print(json.dumps({"name": "tabular_settings", "ratio": None, "found": told}))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "table"))
    parser.add_argument("--data", type=Path, help="folder of the sets as tabular_members.py converts them")
    parser.add_argument("--results", type=Path, required=True, help="file of lines, one per result")
    parser.add_argument("--variants", default="7/8", help=f"names, with ; between: {'; '.join(VARIANTS)}")
    parser.add_argument("--fractions", default="0.1,1", help="of the rows, with commas between")
    parser.add_argument("--trials", help="the first and the last draw, 100-109 if nothing is said; of a table all")
    parser.add_argument("--engine", default="cpu", choices=("cpu", "torch"))
    add_limits(parser)
    options = parser.parse_args()
    return {"measure": measure, "table": table}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
