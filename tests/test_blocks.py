"""The walk over rows: every row once and in order, whatever holds them, and no more at once than allowed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer.blocks import as_tensor, like_input, row_slices, rows_per_block, walk
from mercer.kernels import Gaussian, Linear
from mercer.kernels.base import block_numbers
from tests.examples_of import QUICK, numbers

X, Y = numbers(23, 3), numbers(23, 2, seed=1)


class Recorder:
    """Rows as a memory map gives them, with a note of the most that was asked for at once."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.most = array, array.shape, array.dtype, 0

    def __getitem__(self, rows):
        part = self.array[rows]
        self.most = max(self.most, len(part))
        return part


@pytest.fixture(params=["array", "memory_map", "tensor", "recorder"])
def held(request, tmp_path):
    """X, held in one of the ways that the walk takes."""
    if request.param == "memory_map":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    return {"array": X, "tensor": torch.from_numpy(X), "recorder": Recorder(X)}[request.param]


# ---- walk --------------------------------------------------------------------------------------------------


@QUICK
@given(st.integers(0, 40), st.integers(1, 5000), st.floats(0.0, 0.02))
def test_walk_covers_all_rows_once_in_order_within_the_memory(n, bytes_per_row, working_memory):
    rows = np.arange(n, dtype=np.float64)
    blocks = list(walk([rows, -rows], bytes_per_row=bytes_per_row, working_memory=working_memory))
    assert [i for where, _ in blocks for i in range(n)[where]] == list(range(n))
    for where, (part, opposite) in blocks:
        assert_array_equal(part, rows[where])
        assert_array_equal(opposite, -rows[where])
        assert len(part) == 1 or len(part) * bytes_per_row <= working_memory * 2**20
    # And no block could have been larger: all but the last have the same number of rows, the most that fit.
    if len(blocks) > 1:
        most = len(blocks[0][1][0])
        assert {len(parts[0]) for _, parts in blocks[:-1]} == {most}
        assert (most + 1) * bytes_per_row > working_memory * 2**20


def test_rows_per_block_is_at_least_one_and_at_most_all():
    assert rows_per_block(10, bytes_per_row=2**20, working_memory=3.5) == 3
    assert rows_per_block(10, bytes_per_row=2**30, working_memory=1) == 1
    assert rows_per_block(10, bytes_per_row=0, working_memory=1) == 10
    assert rows_per_block(10, 8, working_memory=1e308) == rows_per_block(10, 8, working_memory=float("inf")) == 10
    assert list(row_slices(5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_come_in_the_precision_asked_for(held, dtype):
    assert {part.dtype for _, (part,) in walk([held], bytes_per_row=1, dtype=dtype)} == {dtype}


def test_arrays_of_different_lengths_are_an_error():
    assert list(walk([X[:0]], bytes_per_row=1)) == []
    with pytest.raises(ValueError, match=r"23.*22"):
        list(walk([X, Y[:-1]], bytes_per_row=1))


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
def test_a_kernel_matrix_asks_for_no_more_rows_than_fit(kernel):
    rows = Recorder(X)
    K = kernel.matrix(rows, Y @ np.ones((2, 3)), working_memory=5 * block_numbers(23, 3) * 8 / 2**20)
    assert rows.most == 5
    assert_allclose(K, kernel(X, Y @ np.ones((2, 3))), rtol=1e-12)


# ---- as_tensor ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_is_shared_where_it_can_be(dtype):
    array = X.astype(dtype)
    for view in (array, array[2:5], array[:, 1:], array[::2], array.T):
        assert np.shares_memory(as_tensor(view).numpy(), view)
        assert_array_equal(as_tensor(view), view)
    tensor = torch.from_numpy(array)
    assert as_tensor(tensor) is tensor


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


WHOLE = np.arange(-6, 6).reshape(4, 3)
ODD = {
    "read_only": (read_only(X), np.float64),
    "read_only_single": (read_only(X.astype(np.float32)), np.float32),
    "negative_strides": (X[::-1, ::-1], np.float64),
    "big_endian": (X.astype(">f8"), np.float64),
    "big_endian_single": (X.astype(">f4"), np.float32),
    "broadcast": (np.broadcast_to(X[:1], (4, 3)), np.float64),
    "half": (X.astype(np.float16), np.float64),
    "long_double": (X.astype(np.longdouble), np.float64),
    "int64": (WHOLE, np.float64),
    "uint8": (np.abs(WHOLE).astype(np.uint8), np.float64),
    "bool": (WHOLE > 0, np.float64),
    "list": (WHOLE.tolist(), np.float64),
    "objects": (X.astype(object), np.float64),
    "empty": (X[:0], np.float64),
    "int_tensor": (torch.arange(6).reshape(2, 3), np.float64),
    "bool_tensor": (torch.arange(6) > 2, np.float64),
    "single_tensor": (torch.ones(2, 3), np.float32),
}


@pytest.mark.parametrize(("values", "dtype"), ODD.values(), ids=ODD.keys())
def test_odd_arrays_become_floating_point_tensors(values, dtype):
    tensor = as_tensor(values)
    assert tensor.numpy().dtype == dtype
    assert_array_equal(tensor, np.asarray(values).astype(dtype))
    assert as_tensor(values, dtype=torch.float32).dtype == torch.float32


@pytest.mark.parametrize("name", ["read_only", "negative_strides"])
def test_a_copy_is_made_where_writing_would_reach_the_caller(name):
    values = ODD[name][0]
    before = values.copy()
    as_tensor(values).add_(1.0)
    assert_array_equal(values, before)


def test_numpy_in_numpy_out():
    result = torch.ones(2, requires_grad=True)
    assert isinstance(like_input(result, X, None), np.ndarray)
    assert like_input(result, X, torch.ones(1)) is result
