"""What pareto, Table 1, says about its 16 data sets, and where OpenML keeps each.

The sets are those of OpenML's benchmark suite 337: numerical features, two classes of equal size. The paper prints
their names and the suite; the numbers of the data sets are the suite's. Its column "# features" counts the target too
(docs/errata.md), so `features` here is one less.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewfire._validate import check_choice


@dataclass(frozen=True)
class DatasetInfo:
    """A row of Table 1.

    Parameters
    ----------
    number : int
        Its task number in Tables 1 and 2, from 1.
    name : str
    features : int
        Columns without the target.
    rows : int
        Examples of the whole set; a local file may hold fewer.
    openml_id : int
    task : str
        "classification" for all of them.
    """

    number: int
    name: str
    features: int
    rows: int
    openml_id: int
    task: str = "classification"


_ROWS = (
    ("credit", 10, 16_714, 44089),
    ("electricity", 7, 38_474, 44120),
    ("covertype", 10, 566_602, 44121),
    ("pol", 26, 10_082, 44122),
    ("house_16H", 16, 13_488, 44123),
    ("MagicTelescope", 10, 13_376, 44125),
    ("bank-marketing", 7, 10_578, 44126),
    ("MiniBooNE", 50, 72_998, 44128),
    ("Higgs", 24, 940_160, 44129),
    ("eye_movements", 20, 7_608, 44130),
    ("Diabetes130US", 7, 71_090, 45022),
    ("jannis", 54, 57_580, 45021),
    ("default-of-credit-card-clients", 20, 13_272, 45020),
    ("Bioresponse", 419, 3_434, 45019),
    ("california", 8, 20_634, 45028),
    ("heloc", 22, 10_000, 45026),
)

DATASETS = {row[0]: DatasetInfo(number, *row) for number, row in enumerate(_ROWS, start=1)}
"""The data sets by name, in the order of Table 1."""


def find(name: str) -> DatasetInfo:
    """The row of Table 1 with this name."""
    return DATASETS[check_choice("name", name, DATASETS)]
