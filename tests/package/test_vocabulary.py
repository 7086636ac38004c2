"""One word for each thing, over every public signature: the table in CONTRIBUTING.md, tested here."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import fewfire

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/fewfire"
SKIPPED = ("fewfire.cli", "fewfire.torch", "fewfire.engines.cuda", "fewfire.papers.recipes.")

# A word that is not ours, and the one that is.
INSTEAD = {
    "eps": "epsilon",
    "net": "network",
    "n_samples": "samples",
    "num_samples": "samples",
    "n_examples": "examples",
    "n_features": "inputs",
    "n_inputs": "inputs",
    "n_neurons": "width",
    "hidden_size": "width",
    "rng": "seed",
    "generator": "seed",
    "num_threads": "threads",
    "n_threads": "threads",
    "num_workers": "workers",
    "n_workers": "workers",
    "n_steps": "steps",
    "num_steps": "steps",
    "n_epochs": "epochs",
    "n_iter": "iterations",
    "max_iterations": "max_iter",
    "lr": "learning_rate",
    "initialiser": "init",
    "backend": "engine",
    "algorithm": "method",
    "center": "centre",
    "centers": "centres",
    "optimizer": "optimiser",
    "normalize": "normalise",
    "randomize": "randomise",
    "behavior": "behaviour",
}
# Inside recorded hashes: the parameters of these starts are keys of a sweep's TOML.
KEPT = {("fewfire.networks.init.perturbed_sparse", "eps"), ("fewfire.networks.init.under_sparse", "eps")}


def public_callables():
    """(qualified name, callable, owning class or None) of everything that a package's __all__ names, and methods."""
    names = ["fewfire", *(m.name for m in pkgutil.walk_packages(fewfire.__path__, "fewfire."))]
    seen, found = set(), []
    for package in names:
        if any(part.startswith("_") for part in package.split(".")) or package.startswith(SKIPPED):
            continue
        try:
            module = importlib.import_module(package)
        except fewfire.MissingDependency:  # an extra that is not installed
            continue
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            found.append((f"{package}.{name}", thing, thing if inspect.isclass(thing) else None))
            if inspect.isclass(thing):
                for method, raw in vars(thing).items():
                    plain = getattr(raw, "__func__", raw)
                    if not method.startswith("_") and inspect.isfunction(plain):
                        found.append((f"{package}.{name}.{method}", plain, thing))
    return found


CALLABLES = public_callables()


def parameters(thing):
    try:
        return inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}


def test_the_walk_finds_the_package():
    names = {name for name, _, _ in CALLABLES}
    assert {"fewfire.engines.Run", "fewfire.halfspace.Index.query", "fewfire.problems.Problem.sample"} <= names
    assert len(names) > 300


def test_one_word_for_each_thing():
    wrong = [
        f"{name}({word}): write {INSTEAD[word]}"
        for name, thing, _ in CALLABLES
        for word in parameters(thing)
        if word in INSTEAD and (name, word) not in KEPT
    ]
    assert wrong == []


def test_estimators_speak_scikit_learn_and_nothing_else_does():
    """random_state and n_jobs are estimators' words; seed, threads and workers everyone else's."""
    wrong = []
    for name, thing, owner in CALLABLES:
        estimator = owner is not None and issubclass(owner, BaseEstimator)
        forbidden = ("seed", "threads", "workers") if estimator else ("random_state", "n_jobs")
        wrong += [f"{name}({word})" for word in parameters(thing) if word in forbidden]
    assert wrong == []


def test_workers_are_processes_of_a_sweep():
    wrong = [
        name for name, thing, _ in CALLABLES if "workers" in parameters(thing) and not name.startswith("fewfire.sweeps")
    ]
    assert wrong == []


CLOSED = (
    *("loss", "sampling", "decay", "norm", "solver", "on_divergence", "schedule", "second_layer", "adversary"),
    *("strategy", "curve", "binarize"),
)


def test_choices_are_typed_as_choices():
    """A parameter that takes one of a few names lists them: its annotation is no plain str."""
    wrong = [
        f"{name}({word}: {parameter.annotation})"
        for name, thing, _ in CALLABLES
        for word, parameter in parameters(thing).items()
        if word in CLOSED and re.search(r"\bstr\b", str(parameter.annotation))
    ]
    assert wrong == []


def test_a_class_name_means_one_class():
    """Across the package, private modules included; names that begin with an underscore belong to their file."""
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_names_of_docstrings_are_exported():
    for name in ("Stream", "ConvergenceWarning", "CompressedRows"):
        assert name in fewfire.__all__


# Words that are not the field's, and what to write instead.
PLAIN = {
    "told|tells?|telling|spoken|said": "describe, report, format, print",
    "twins?": "reference implementation",
    "races?|referees?|hopeless": "successive halving, pruning, pruned",
    r"chances|(?<!by )(?<!beyond )(?<!than )chance": "probability",
    "forks?": "nodes",
    r"places|(?<!in )(?<!in like )(?<!their )(?<!its )place": "index",
    "judged|held(?![-_ ]out)": "validated on, validation rows, kept",
    "work off|beside": "run, concurrently, next to",
    "whoever|nobody|somebody": "name what it is",
}


def described(tree):
    """(line, text) of every docstring and of every name of a function, class or parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, re.sub(r"`[^`]*`|>>> .*", " ", node.value.value)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name.strip("_").replace("_", " ")
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg.strip("_").replace("_", " ")


@pytest.mark.parametrize("package", sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}))
def test_words_are_the_field_s(package):
    """In docstrings and signatures of a package or module; names in backquotes are those of other packages."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {match.group(0)}: write {instead}"
        for path in (SOURCE / package, *sorted((SOURCE / package).rglob("*.py")))
        if path.is_file()
        for line, text in described(ast.parse(path.read_text(encoding="utf-8")))
        for words, instead in PLAIN.items()
        for match in re.finditer(rf"\b({words})\b", text, re.I)
    ]
    assert wrong == []


AMERICAN = r"\b(initializ|optimiz|normaliz|regulariz|randomiz|summariz|behavior|center(ed|s)?\b)\w*"


@pytest.mark.parametrize(
    "page", sorted(p.relative_to(ROOT).as_posix() for p in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
)
def test_prose_is_british(page):
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|<[^>]*>", " ", (ROOT / page).read_text(), flags=re.S)
    assert [match.group(0) for match in re.finditer(AMERICAN, text, re.I)] == []
