"""Problems in a spec: a name and the fields of the problem's class, there and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from fewfire._errors import invalid
from fewfire.experiments._keys import at, check_given, check_keys, check_name, check_table
from fewfire.problems import CorrelatedParity, Indexing, Junta, LearningWithRounding, Parity

if TYPE_CHECKING:
    from fewfire.problems import Problem

PROBLEMS: Final[dict[str, type[Any]]] = {
    "parity": Parity,
    "correlated_parity": CorrelatedParity,
    "junta": Junta,
    "indexing": Indexing,
    "learning_with_rounding": LearningWithRounding,
}


def parse_problem(value: object, path: str = "problem") -> Problem:
    """The problem that a concrete table describes."""
    table = dict(check_table(path, value))
    check_given(path, table, ("name",))
    kind = PROBLEMS[check_name(f"{path}.name", table.pop("name"), PROBLEMS)]
    check_keys(path, table, [field.name for field in fields(kind)])
    try:
        with at(path):
            problem: Problem = kind(**table)
    except TypeError as error:  # a field without default is missing
        takes = ", ".join(field.name for field in fields(kind))
        raise invalid(path, f"takes {takes}", sorted(table), str(error).split("__init__() ")[-1]) from None
    return problem


def plain_problem(problem: Problem) -> dict[str, Any]:
    """The table of a problem, with every field."""
    name = next((name for name, kind in PROBLEMS.items() if type(problem) is kind), None)
    if name is None:
        raise invalid("problem", f"must be one of {', '.join(PROBLEMS)}", problem, "a spec holds plain values only")
    values = {field.name: getattr(problem, field.name) for field in fields(PROBLEMS[name])}
    return {"name": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}}
