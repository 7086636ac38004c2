"""The laboratory: one package per paper, with its statements, measurements and recipes. The library does not import it.

`pareto`, `parities`, `sparse_activations` and `sublinear` hold the statements as plain functions of plain numbers;
`recipes` lists and runs the experiments that could refute them.
"""

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.papers import pareto, parities, recipes, sparse_activations, sublinear

__all__ = ["pareto", "parities", "recipes", "sparse_activations", "sublinear"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {SUBPACKAGES: "pareto parities recipes sparse_activations sublinear"})
