"""How networks that held-out rows have stopped cool down: a few last epochs, at a learning rate that falls to zero.

When all decisions are taken nothing need be held out any more, and the rows that a network left out, a quarter, can
still teach it. So networks go on with all rows, from the weights that were best and with a fresh optimiser, whose first
steps do not remember where larger ones led, until the steps have become nothing.

Nobody judges the end: rows that have been trained on cannot, and held-out rows, of which one network each speaks, would
not see what the mean of several gains when each is fitted further. The length is therefore a share of what the
held-out rows asked for, and weights of the mixture, temperature and shares of trees stay those learned before. Where
training may go on (`warm_start`), it does so from the weights before, which have not seen the rows that judge them.

Rows that are given to stop by (`validation_data`) judge the mean of all networks, which train on all other rows anyway:
there is nothing to make up for, and none cools down.
"""

from __future__ import annotations

SHARE = 0.3  # of the epochs up to the best
FIRST = 0.75  # share of the learning rate in the first of them


def cooling_paces(best: int) -> tuple[float, ...]:
    """Shares of the learning rate, epoch by epoch, of networks that were best after so many epochs.

    >>> cooling_paces(3), cooling_paces(13)
    ((0.75,), (0.75, 0.5625, 0.375, 0.1875))
    """
    epochs = max(1, round(SHARE * best))
    return tuple(FIRST * (epochs - epoch) / epochs for epoch in range(epochs))
