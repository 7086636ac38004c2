"""Small matrix products stay on one thread, large ones do not, and the setting met is restored."""

import numpy as np  # noqa: F401 loads a BLAS
from threadpoolctl import threadpool_info, threadpool_limits

from fewfire._threads import SMALL, calm_products


def test_small_products_stay_on_one_thread():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        assert threads() == {2}
        with calm_products(SMALL - 1):
            assert threads() == {1}
        with calm_products(SMALL):
            assert threads() == {2}
        assert threads() == {2}
