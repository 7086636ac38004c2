"""Puts another build of the C++ part, named by FEWFIRE_PRELOAD, in the place of the installed one.

A plugin of pytest for `tools/sanitize.py` (`-p preload_core`): it has to be imported before fewfire is.
"""

from __future__ import annotations

import importlib.util
import os
import sys

_spec = importlib.util.spec_from_file_location("fewfire._core", os.environ["FEWFIRE_PRELOAD"])
assert _spec is not None
assert _spec.loader is not None
sys.modules["fewfire._core"] = _module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
