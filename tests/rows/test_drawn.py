"""Some rows of many: in order, none twice, and drawn from the generator as `choice` does."""

import numpy as np
from numpy.testing import assert_array_equal

from mercer.rows import drawn_rows


def test_drawn_rows_are_in_order_and_none_comes_twice():
    random = np.random.RandomState(0)
    assert_array_equal(drawn_rows(5, 5, random), np.arange(5))
    some = drawn_rows(50, 10, random)
    assert len(some) == 10
    assert (np.diff(some) > 0).all()
    among = np.array([3, 5, 8, 9])
    assert_array_equal(drawn_rows(50, 4, random, among), among)
    assert set(drawn_rows(50, 2, random, among)) < set(among)


def test_rows_are_drawn_by_their_numbers():
    """Among all rows, the draw is that of `choice` of a number, on which the seeds of fitted models depend."""
    expected = np.sort(np.random.RandomState(3).choice(50, 10, replace=False))
    assert_array_equal(drawn_rows(50, 10, np.random.RandomState(3)), expected)
