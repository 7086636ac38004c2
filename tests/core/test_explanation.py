"""What `explain` of every estimator gives: text, a card and a table."""

import numpy as np
import pytest

import fewfire as ff
from fewfire._explanation import Explanation

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
SIGNS = np.sign(X).astype(int)
Y = np.where(SIGNS[:, 0] * SIGNS[:, 1] > 0, "up", "down")


@pytest.mark.parametrize(
    ("model", "table", "columns"),
    [
        (ff.LowDegreeClassifier(2, method="regression"), SIGNS, ["columns", "coefficient", "significant"]),
        (ff.ParityNetClassifier(width=20, max_steps=100, random_state=0), SIGNS, ["column", "weight"]),
        (ff.RobustClassifier(20, epochs=3, random_state=0), X, ["robust_loss", "validation_error"]),
        (ff.SparseActivationClassifier(8, 2, steps=50, random_state=0), X, ["neuron", "firing", "strength"]),
    ],
)
def test_every_explanation_is_text_a_card_and_a_table(model, table, columns):
    pytest.importorskip("pandas")
    found = model.fit(table, Y).explain()
    assert isinstance(found, Explanation)
    assert str(found).splitlines() == list(found.lines) and repr(found) == str(found)
    assert found._repr_html_().startswith(f"<div><strong>{type(model).__name__}</strong><pre>")
    frame = found.to_frame()
    assert list(frame.columns) == columns and len(frame) > 0


def test_a_card_escapes_what_it_shows():
    assert "a &lt; b" in Explanation("Model", ["a < b"], {})._repr_html_()
