"""Drift lists at the ends of the exponents: no pair that fires is missing from them."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("total", [-149, -140, -126, -100, 0, 60])
def test_no_pair_is_missed_whatever_the_exponents(core, total):
    """Weights and examples whose scores are near 2^total; the threshold among the scores, the examples moving."""
    draw = np.random.default_rng(total + 200)

    def numbers(shape, base):
        spread = np.clip(base + draw.integers(-3, 2, size=shape), -149, 63)
        return np.ldexp(draw.uniform(-1.9, 1.9, size=shape), spread).astype(np.float32)

    for attempt in range(90):
        core.set_isa(core.available_isas()[attempt % len(core.available_isas())])
        exponent, inputs = int(draw.integers(-149, 64)), int(draw.choice([1, 3, 6, 20]))
        weights, anchors = numbers((200, inputs), exponent), numbers((24, inputs), total - exponent)
        threshold = np.quantile(weights.astype(float) @ anchors.T.astype(float), draw.uniform(0.5, 0.99))
        reach = draw.choice([0.0, 1e-3, 0.3]) * float(np.abs(anchors).max())
        columns = np.zeros(200, np.float32), np.ones(200, np.float32)
        trainer = core.ActiveTrainer(weights, *columns, float(threshold), anchors, reach, reach * 1e-6, 1)
        values, gradients = np.empty(24), np.empty((24, inputs), np.float32)
        for _ in range(3):
            step = reach / 2 / np.sqrt(inputs) * draw.uniform(-1, 1, size=anchors.shape)
            assert trainer.place(anchors + step.astype(np.float32)) == -1
            trainer.evaluate(values, gradients)
            assert trainer.missing() is None, (exponent, inputs)
            trainer.update(np.full(24, 1e-3, np.float32), 1e-2)
