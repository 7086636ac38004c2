"""Errors of a spec name the path of the key, such as `training.learning_rate`, and list the choices."""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fewfire._errors import InvalidArgument, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def check_table(path: str, value: object) -> Mapping[str, Any]:
    """A table of keys and values."""
    if not isinstance(value, dict):
        raise invalid(path, "must be a table", value, f"write it under [{path}]")
    return value


def check_keys(path: str, table: Mapping[str, Any], known: Iterable[str], required: Iterable[str] = ()) -> None:
    """Refuse keys that mean nothing, with the nearest one that does, and tables that lack a needed key."""
    names = list(known)
    for key in table:
        if key not in names:
            raise invalid(join(path, key), f"is not a known key; the keys here are {', '.join(names)}", table[key],
                          did_you_mean(key, names) or "remove it")  # fmt: skip
    check_given(path, table, required)


def check_given(path: str, table: Mapping[str, Any], required: Iterable[str]) -> None:
    """Refuse tables that lack a needed key."""
    for key in required:
        if key not in table:
            where = f"[{path}]" if path else "the spec"
            raise invalid(join(path, key), "must be given", "a table without it", f"add {key} = … to {where}")


def check_name(path: str, value: object, choices: Iterable[str]) -> str:
    """One of a few names."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        rule = f"must be one of {', '.join(map(repr, names))}"
        raise invalid(path, rule, value, did_you_mean(value, names))
    return value


def did_you_mean(word: object, names: Iterable[str]) -> str:
    """A guess at what was meant, or nothing."""
    near = get_close_matches(word, list(names), n=1) if isinstance(word, str) else []
    return f"write {near[0]!r} if that is what was meant" if near else ""


def join(path: str, key: str) -> str:
    """The path of a key of the table at `path`."""
    return f"{path}.{key}" if path else key


@contextmanager
def at(path: str) -> Iterator[None]:
    """Prefix errors about arguments with the path of the table that they came from."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}.{error}") from None
