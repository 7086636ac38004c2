"""Adapters of the models that can be attacked without further ado; every module of this folder registers its own.

Estimators that live above this package (`ParityNetClassifier`, `RobustClassifier`) register theirs where they are
defined.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
