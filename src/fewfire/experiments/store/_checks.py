"""What is read from a store is checked before it is used, since SQLite itself notices only some kinds of damage.

The texts of specs are checked by their hashes, and all values by their kinds. A number that has become another number
is not noticed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.experiments.spec import canonical, text_hash
from fewfire.experiments.spec._limits import check_plain
from fewfire.experiments.spec._run_spec import parse_data, parse_network
from fewfire.experiments.spec._tables import parse_problem, parse_training
from fewfire.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ALLOWED: dict[Any, set[type[Any]]] = {np.str_: {str}, np.int64: {int}, np.float64: {float, type(None)}}
_TABLES = {
    "data": ("samples", "test_samples"),
    "network": ("start", "width"),
    "problem": ("name",),
    "training": ("phases", "stop_error"),
}
"""What a setting has at least."""


def are(values: Iterable[Any], kind: type[Any]) -> bool:
    """Whether values from SQLite are texts, integers, or reals of which some may be missing."""
    return set(map(type, values)) <= _ALLOWED[kind]


def table_of(text: Any, what: str) -> dict[str, Any]:
    """The JSON table in a text that a store holds; `what` names it."""
    try:
        table = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} is damaged: it is no JSON ({str(error).splitlines()[0]}).") from None
    if not isinstance(table, dict):
        raise FileFormatError(f"{what} is damaged: it is no table of JSON.")
    try:
        check_plain(table, "")
    except InvalidArgument as error:
        raise FileFormatError(f"{what} is damaged: {error}") from None
    return table


def setting_table(text: Any) -> dict[str, Any]:
    """The tables of a setting, each one such as a spec may have."""
    table = table_of(text, "a setting")
    for name, keys in _TABLES.items():
        part = table.get(name)
        missing = [key for key in keys if not isinstance(part, dict) or key not in part]
        if missing:
            raise FileFormatError(f"a setting is damaged: it lacks {name}.{missing[0]}.")
        _check_part(name, canonical(part))
    return table


def _problem(table: dict[str, Any]) -> None:
    """A problem that is known here, or a name and values: one from outside may be registered elsewhere."""
    if isinstance(table["name"], str) and table["name"] not in PROBLEMS:
        if any(isinstance(value, dict) for value in table.values()):
            raise FileFormatError("a setting is damaged: a value of its problem is a table.")
    else:
        parse_problem(table)


_PARSERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "data": parse_data,
    "network": parse_network,
    "problem": _problem,
    "training": parse_training,
}


@lru_cache(maxsize=4096)  # the parts of a grid's settings repeat
def _check_part(name: str, text: str) -> None:
    try:
        _PARSERS[name](json.loads(text))
    except InvalidArgument as error:
        raise FileFormatError(f"a setting is damaged: {error}") from None


def run_hash(setting: str, trial: int) -> str:
    """The hash of the run that a setting and a trial make."""
    head, _, tail = setting.rpartition(',"version":')
    return text_hash(f'{head},"trial":{trial},"version":{tail}')
