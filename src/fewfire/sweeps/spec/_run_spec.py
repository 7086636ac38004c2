"""The spec of one run, its canonical text and its hash.

The canonical text is JSON with sorted keys and every default written out. The run's hash is that of the text, and the
run's streams "data", "init", "batches" and "test" are keyed by the text too: whatever is part of the spec
decides them, and nothing else does. Two runs that differ in anything (width, steps, trial …) share no random
numbers, so the trials of different cells of a grid are independent.

Where labels are noisy, `data.test_labels` in the text is "clean" if held-out examples have clean ones. A noisy text
without that key has noisy ones: so were they before there was a choice, and such rows keep their hash and meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from fewfire._errors import FewfireError, FileFormatError, invalid
from fewfire._random import Stream, digest64
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines import Run, Sample, Schedule, Start
from fewfire.engines._run import Widths, check_widths
from fewfire.networks import init
from fewfire.networks.init._base import INITIALISERS, Initialiser
from fewfire.problems import Problem
from fewfire.problems._base import CleanLabels
from fewfire.sweeps.spec._tables import (
    at,
    check_given,
    check_keys,
    check_plain,
    check_table,
    join,
    parse_problem,
    parse_training,
    plain_problem,
    plain_training,
)

VERSION = 1  # part of every hash: a change of what a spec means must change it
TEST_SAMPLES = 2000

TestLabels: TypeAlias = Literal["clean", "noisy"]
"""The labels of held-out examples: those of the target, or flipped as often as the training set's."""


class Data(NamedTuple):
    """The examples of a run: how many to train on (None: fresh ones), how many to test on, the labels of the latter.

    Of a table the number to train on may be a share in (0, 1] of its rows; `Sweep.run_at` makes it a number.

    Examples
    --------
    >>> Data(300)
    Data(samples=300, test_samples=2000, test_labels='clean')
    """

    samples: int | float | None
    test_samples: int = TEST_SAMPLES
    test_labels: TestLabels = "clean"


DEPTH = 100
"""Hidden layers at most."""

PARTS = ("data", "network", "problem", "training", "trial", "version")


@dataclass(frozen=True)
class RunSpec:
    """Everything one run depends on.

    Parameters
    ----------
    problem : Problem
    start : Initialiser
        How the network's weights are drawn.
    width : int or tuple of int
        Neurons of the hidden layer, or of each of several.
    samples : int or None
        Size of the training set; None is online, fresh examples every step.
    schedule : Schedule
    trial : int
        Repetitions differ in nothing but this number.
    test_samples : int
        Held-out examples.
    test_labels : "clean" or "noisy"
        What they are compared with where the problem has label noise: the target, or labels as noisy as in training.
        Where the clean error is e, flips of probability p make the noisy one p + (1 − 2p)·e on average.
    """

    problem: Problem
    start: Initialiser
    width: Widths
    samples: int | None
    schedule: Schedule
    trial: int = 0
    test_samples: int = TEST_SAMPLES
    test_labels: TestLabels = "clean"

    def __post_init__(self) -> None:
        if type(self.width) is not int:
            object.__setattr__(self, "width", check_widths("width", self.width))
        for name, low in (("samples", 1), ("trial", 0), ("test_samples", 1)):
            value = getattr(self, name)
            if (type(value) is not int or value < low) and not (name == "samples" and value is None):
                object.__setattr__(self, name, check_integer(name, value, low))
        if self.test_labels != "clean":
            check_choice("test_labels", self.test_labels, get_args(TestLabels))
            if not is_noisy(self.problem):
                object.__setattr__(self, "test_labels", "clean")

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """The spec whose canonical text this is."""
        try:
            table = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"the text of a run is not valid JSON: {error}.") from None
        check_plain(table, "")
        check_keys("", check_table("the text of a run", table), PARTS, PARTS)
        start, width = parse_network(table["network"])
        data = parse_data({"test_labels": "noisy", **check_table("data", table["data"])})
        problem, schedule = parse_problem(table["problem"]), _schedule_of(canonical(table["training"]))
        samples: Any = data.samples
        return cls(problem, start, width, samples, schedule, table["trial"], *data[1:])

    @property
    def clean_test(self) -> bool:
        """Whether labels are noisy, and those of held-out examples are not."""
        return self.test_labels == "clean" and is_noisy(self.problem)

    @property
    def resolved(self) -> Schedule:
        """The schedule with epochs as steps."""
        return self.schedule.of_rows(self.samples)

    @cached_property
    def setting(self) -> str:
        """The canonical text without the trial: what the repetitions of one cell share."""
        labels: TestLabels | None = "clean" if self.clean_test else None
        data = _text(plain_data, self.samples, self.test_samples, labels)
        network = _text(plain_network, self.start, self.width)
        problem, training = _text(plain_problem, cast("Hashable", self.problem)), _text(plain_training, self.schedule)
        return f'{{"data":{data},"network":{network},"problem":{problem},"training":{training},"version":{VERSION}}}'

    @property
    def canonical(self) -> str:
        """The whole spec as JSON with sorted keys."""
        head, tail = self.setting.rsplit(',"version":', 1)
        return f'{head},"trial":{self.trial},"version":{tail}'

    def with_trial(self, trial: int) -> RunSpec:
        """Another repetition; it shares this one's texts, so that a large grid is planned in no time."""
        sizes = self.test_samples, self.test_labels
        other = RunSpec(self.problem, self.start, self.width, self.samples, self.schedule, trial, *sizes)
        other.__dict__["setting"] = self.setting
        return other

    @cached_property
    def hash(self) -> str:
        """128 bits of the BLAKE2b hash of the canonical text, in hexadecimal."""
        return text_hash(self.canonical)

    def stream(self, name: str) -> Stream:
        """The run's stream "data", "init", "batches" or "test"."""
        return Stream.of_run(self.canonical, name)

    def describe(self) -> Run:
        """The engine's run, described: its streams "data", "init", "batches" and "test" are keyed by the whole spec."""
        problem, key = self.problem, digest64(self.canonical)
        start = Start(self.start, problem.inputs, self.width, key, outputs_of(problem))
        sample = None if self.samples is None else Sample(problem, self.samples, key)
        rows = min(self.test_samples, getattr(problem, "test_rows", self.test_samples))
        return Run(
            start,
            self.schedule,
            sample=sample,
            source=problem if sample is None else None,
            test=Sample(CleanLabels(problem) if self.clean_test else problem, rows, Stream(key, "test")),
            seed=key,
            support=getattr(problem, "support", None),
        )


def parse_network(value: object, path: str = "network") -> tuple[Initialiser, Widths]:
    """The start and the widths that a concrete table describes; a start is a name or a table with one."""
    table = check_table(path, value)
    if "widths" in table:
        check_keys(path, table, ("start", "widths"), ("start",))
        if not isinstance(table["widths"], list | tuple):
            raise invalid(join(path, "widths"), "must be a list of widths", table["widths"], "write [100, 50]")
        width = check_widths(join(path, "widths"), table["widths"])
    else:
        check_keys(path, table, ("start", "width", "depth"), ("start", "width"))
        depth = check_integer(join(path, "depth"), table.get("depth", 1), 1, DEPTH)
        width = check_widths(path, (check_integer(join(path, "width"), table["width"], 1),) * depth)
    start, where = table["start"], join(path, "start")
    given = dict(check_table(where, {"name": start} if isinstance(start, str) else start))
    check_given(where, given, ("name",))
    name = check_choice(join(where, "name"), given.pop("name"), INITIALISERS)
    with at(where):
        return init.from_parameters(name, given), width


def is_noisy(problem: Problem) -> bool:
    """Whether labels differ from the target's now and then."""
    return getattr(problem, "bayes_error", 0.0) > 0.0


def parse_data(value: object, path: str = "data") -> Data:
    """The numbers of training and held-out examples, and the labels of these, that a concrete table describes."""
    table = check_table(path, value)
    check_keys(path, table, ("samples", "test_samples", "test_labels"), ("samples",))
    labels = cast(
        "TestLabels",
        check_choice(join(path, "test_labels"), table.get("test_labels", "clean"), get_args(TestLabels)),
    )
    test_samples = check_integer(join(path, "test_samples"), table.get("test_samples", TEST_SAMPLES), 1)
    samples = table["samples"]
    if isinstance(samples, str):
        if samples != "online":
            raise invalid(join(path, "samples"), 'must be a number of examples or "online"', samples)
        return Data(None, test_samples, labels)
    if isinstance(samples, float):
        remedy = 'write a whole number of examples, a share of the rows of a table, or "online"'
        share = check_number(join(path, "samples"), samples, 0.0, 1.0, open_low=True, remedy=remedy)
        return Data(share, test_samples, labels)
    size = check_integer(join(path, "samples"), samples, 1, remedy='write "online" for fresh ones')
    return Data(size, test_samples, labels)


def plain_network(start: Initialiser, width: Widths) -> dict[str, Any]:
    """The table of a start and its widths; of one hidden layer it has no key for the depth."""
    table: dict[str, Any] = {"start": {"name": start.name, **start.parameters()}}
    if isinstance(width, int):
        return table | {"width": width}
    equal = len(set(width)) == 1
    return table | ({"width": width[0], "depth": len(width)} if equal else {"widths": list(width)})


def outputs_of(problem: Problem) -> int:
    """The outputs of a network for a problem: one, or as many as it says."""
    return int(getattr(problem, "outputs", 1))


def plain_data(samples: int | float | None, test_samples: int, test_labels: TestLabels | None) -> dict[str, Any]:
    """The table of the numbers of examples, and of the labels where these are given."""
    sizes: dict[str, Any] = {"samples": "online" if samples is None else samples, "test_samples": test_samples}
    return sizes if test_labels is None else {**sizes, "test_labels": test_labels}


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, and no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def text_hash(text: str) -> str:
    """128 bits of the BLAKE2b hash of a text, in hexadecimal."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=1 << 14)  # the parts of a grid's specs repeat: planning 200,000 runs takes seconds
def _text(plain: Callable[..., Any], *part: Any) -> str:
    return canonical(plain(*part))


@lru_cache(maxsize=256)
def _schedule_of(text: str) -> Schedule:
    return parse_training(json.loads(text))


def plain(value: object) -> str:
    """One value: numbers without a needless fraction, texts as they are, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)


def call(table: Mapping[str, Any], always: Iterable[str] = ()) -> str:
    """A name with its numbers, "parity(n=30, k=3)"; zeros and vectors only where two tables differ in them."""
    kept = set(always)
    first = {"n": 0, "k": 1}
    fields = [
        f"{key}={plain(value)}"
        for key, value in sorted(table.items(), key=lambda item: first.get(item[0], 9))
        if key != "name" and (key in kept or (not isinstance(value, list) and value not in (0, None)))
    ]
    return f"{table['name']}({', '.join(fields)})" if fields else str(table["name"])


def start_name(start: Mapping[str, Any]) -> str:
    """A start with the parameters that are not the default ones, "sparse(s=2)"."""
    name, given = str(start["name"]), {key: value for key, value in start.items() if key != "name"}
    if name not in INITIALISERS:
        return call(start)
    kept: dict[str, Any] = {"name": name}
    for key, value in given.items():
        rest = {other: given[other] for other in given if other != key}
        with suppress(FewfireError):  # a parameter that has no default
            if init.from_parameters(name, rest) == init.from_parameters(name, given):
                continue
        kept[key] = value
    return call(kept)
