"""What fits of several learners share."""

import pytest

from fewfire.learners._fitting import all_or_nothing


class Counter:
    """Sets an attribute, and raises where it is asked to."""

    @all_or_nothing
    def fit(self, value, stop=False):
        self.count_ = value
        if stop:
            raise ValueError(value)
        return self


def test_a_fit_that_raises_changes_nothing():
    counter = Counter()
    with pytest.raises(ValueError, match="1"):
        counter.fit(1, stop=True)
    assert vars(counter) == {}
    counter.fit(2)
    with pytest.raises(ValueError, match="3"):
        counter.fit(3, stop=True)
    assert vars(counter) == {"count_": 2}
