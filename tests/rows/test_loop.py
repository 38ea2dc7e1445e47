"""The one loop over rows: every row counts once, and who adds up changes nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer.rows import MappedRows, RowNumbers, map_over_rows, sum_over_rows
from mercer.rows.tree import FAN, TreeSum, added, block_sum
from tests.examples_of import QUICK, numbers

X, Y = numbers(23, 3), numbers(23, 2, seed=1)


def moments(calls):
    def of_blocks(x, y):
        calls.append(len(x))
        return x.T @ y, x.sum(dim=0)

    return of_blocks


@pytest.fixture(params=["array", "memory_map", "tensor", "mapped"])
def held(request, tmp_path):
    """X, held in one of the ways that the loop takes."""
    if request.param == "memory_map":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    return {"array": X, "tensor": torch.from_numpy(X), "mapped": MappedRows(np.multiply, (2.0,), X / 2)}[request.param]


@pytest.mark.parametrize("rows", [1, 4, 22, 23, 1000])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_sums_over_rows_equal_the_sum(held, rows, n_threads):
    calls = []
    product, total = sum_over_rows(moments, (calls,), held, Y, rows_a_block=rows, n_threads=n_threads)
    assert_allclose(product, X.T @ Y, rtol=1e-12)
    assert_allclose(total, X.sum(axis=0), rtol=1e-12)
    assert max(calls) == min(rows, 23)
    assert sum(calls) == 23


def test_sums_do_not_write_into_what_the_function_returned():
    ones = torch.ones(2)
    (total,) = sum_over_rows(lambda: lambda x: (ones,), (), X, rows_a_block=1)
    assert total.tolist() == [23.0, 23.0]
    assert ones.tolist() == [1.0, 1.0]


def test_sums_of_single_precision_are_added_in_double():
    tenth = torch.full((1,), 0.1)
    (total,) = sum_over_rows(lambda: lambda x: (tenth,), (), np.zeros((5000, 1)), rows_a_block=1)
    assert total.dtype == torch.float64
    assert abs(float(total) - 5000 * float(tenth)) < 1e-9


def test_no_rows_is_an_error_for_sums():
    with pytest.raises(ValueError, match=r"no rows .* shape\[0\] = 0, at least 1"):
        sum_over_rows(lambda: lambda x: (x.sum(),), (), X[:0], rows_a_block=1)


def test_arrays_of_different_lengths_are_an_error():
    with pytest.raises(ValueError, match=r"23.*22"):
        sum_over_rows(lambda: lambda x, y: (x.sum() + y.sum(),), (), X, Y[:-1], rows_a_block=1)


def test_results_of_rows_come_in_order(held):
    doubled, places = map_over_rows(lambda: lambda x, i: (2 * x, i), (), held, RowNumbers(23, 100), rows_a_block=5)
    assert_array_equal(doubled, 2 * X)
    assert_array_equal(places, np.arange(100, 123))
    assert places.dtype == np.int64


def naive_tree(terms):
    """The tree by its levels: groups of FAN, each added from its first on, until one is left."""
    while len(terms) > 1:
        groups = [terms[i : i + FAN] for i in range(0, len(terms), FAN)]
        terms = []
        for group in groups:
            total = group[0]
            for term in group[1:]:
                total = total + term
            terms.append(total)
    return terms[0]


@QUICK
@given(st.integers(1, 5 * FAN**2))
def test_the_tree_is_that_of_groups_of_groups(n):
    """Bit for bit: so that tasks of workers, which are groups, give what one process does."""
    terms = torch.from_numpy(numbers(n, 2, seed=n) * 10.0 ** np.random.RandomState(n).randint(-8, 8, size=(n, 1)))
    total = TreeSum()
    for term in terms:
        total.add([term])
    assert_array_equal(total.total()[0], naive_tree(list(terms)))


@pytest.mark.parametrize("blocks", [FAN, FAN**2, FAN**3])
def test_the_tasks_of_workers_add_up_to_the_same_bits(blocks):
    rows = numbers(997, 4, seed=3)
    calls = []
    whole = sum_over_rows(moments, (calls,), rows, rows[:, :2], rows_a_block=5)
    tasks = [
        block_sum(moments, (calls,), [rows[i : i + 5 * blocks], rows[i : i + 5 * blocks, :2]], 5)
        for i in range(0, 997, 5 * blocks)
    ]
    while len(tasks) > 1:
        tasks = [added(tasks[i : i + FAN]) for i in range(0, len(tasks), FAN)]
    for ours, theirs in zip(whole, tasks[0], strict=True):
        assert_array_equal(ours, theirs)


def of_numbers(numbers):
    """Return rows made of their own numbers."""
    return np.stack([numbers, -numbers], axis=1)


@pytest.mark.parametrize("rows", [RowNumbers(6), MappedRows(of_numbers, (), RowNumbers(6))], ids=["numbers", "mapped"])
def test_rows_elsewhere_take_the_same_indices_as_arrays(rows):
    array = rows[:]
    for index in ([True, False, False, True, True, False], [5, 0, 0], [-1, -6], []):
        index = np.array(index, dtype=bool if True in index and False in index else np.intp)
        assert_array_equal(rows[index], array[index])
    for index in ([6], [-7], [True, False]):
        with pytest.raises(IndexError, match="6"):
            rows[np.array(index)]
