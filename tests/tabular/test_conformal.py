"""The how-to of docs/tabular.md on conformal intervals runs with MAPIE, and its intervals cover what they promise."""

import re
from pathlib import Path

import pandas as pd
import pytest

import fewfire as ff

mapie = pytest.importorskip("mapie.regression")
PAGE = Path(__file__).resolve().parents[2] / "docs/tabular.md"


def test_the_how_to_covers_nine_in_ten():
    (block,) = (block for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.S) if "mapie" in block)
    names = {}
    exec(compile(block, "docs", "exec"), names)
    assert 0.85 < names["covered"] < 0.97  # 100 rows of calibration: a standard deviation of 0.03
    assert (names["low"] < names["points"]).all() and (names["points"] < names["high"]).all()


def test_a_frame_with_categories_and_no_rows_to_spare():
    frame = pd.DataFrame({"size": ["S", "M", "L"] * 40, "x": [row / 10 for row in range(120)]})
    y = (frame["size"] == "L") + frame["x"] / 10
    model = ff.TabularRegressor(hidden=(16,), members=2, scaling="rank", trees=False, random_state=0)
    crossed = mapie.CrossConformalRegressor(model, confidence_level=0.9, cv=3).fit_conformalize(frame, y)
    _, ends = crossed.predict_interval(frame)
    assert ends.shape == (120, 2, 1) and (ends[:, 0] < ends[:, 1]).all()
