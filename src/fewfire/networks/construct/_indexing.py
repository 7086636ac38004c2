"""The indexing function, a 1-sparse network of 2^b neurons (sparse-activations, section 1).

An input is (x, y): x of b coordinates names a position in y, which has 2^b. The position is the integer
written in x, most significant coordinate first, with −1 for the digit 0 and +1 for 1.
"""

from __future__ import annotations

import numpy as np

from fewfire._validate import check_integer
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.construct._integers import digits


def indexing(b: int, signed: bool = False) -> TwoLayer:
    """The network on b + 2^b coordinates that returns the named bit of y, with at most one neuron active.

    The neuron of α has preactivation ⟨α, x⟩ + y_α/2 − b + 1/2: (1 + y_α)/2 when x = α and below 0 otherwise.

    Parameters
    ----------
    b : int from 1 to 12
        Coordinates of x.
    signed : bool
        False: values 1 and 0 for a bit +1 and −1, as printed. True: values +1 and −1.
    """
    b = check_integer("b", b, 1, 12, "the network has 2**b neurons with b + 2**b weights each")
    addresses = digits(np.arange(2**b)[:, None], b)[:, ::-1]
    hidden = np.concatenate([addresses, 0.5 * np.eye(2**b)], axis=1)
    bias, output = np.full(2**b, 0.5 - b), np.ones(2**b)
    return TwoLayer(hidden, bias, 2 * output, -1.0) if signed else TwoLayer(hidden, bias, output)
