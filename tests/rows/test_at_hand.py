"""Rows in a temporary file are those that were read, in any order, and are read once."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from mercer.rows import DaskRows, MappedRows, RowsOnDisk, open_rows, rows_at_hand, some_rows_of
from tests.examples_of import numbers

X = numbers(101, 3)


def halved(rows):
    return rows / 2


@pytest.fixture(params=["files", "single precision", "dask", "made of others", "a column"])
def source(request, tmp_path):
    """Rows that are elsewhere, and the same as an array."""
    if request.param == "dask":
        return DaskRows(da.from_array(X, chunks=((0, 40, 1, 0, 60), 2))), X
    kind = np.float32 if request.param == "single precision" else np.float64
    pd.DataFrame(X.astype(kind), columns=list("abc")).to_parquet(tmp_path / "x.parquet", row_group_size=7)
    rows = open_rows(tmp_path)
    if request.param == "made of others":
        return MappedRows(halved, (), rows), X / 2
    return (rows.column("b"), X[:, 1]) if request.param == "a column" else (rows, X.astype(kind))


def test_any_rows_of_a_temporary_file(source, monkeypatch):
    monkeypatch.setattr("mercer.blocks.ROWS_A_PART", 13)
    rows, here = source
    at = np.random.default_rng(0).integers(0, 101, 40)
    with rows_at_hand(rows) as stored:
        assert isinstance(stored, RowsOnDisk)
        assert (stored.shape, stored.dtype, stored.names) == (rows.shape, rows.dtype, rows.names)
        assert_array_equal(stored[:], here)
        assert_array_equal(stored[at], here[at])
        some = some_rows_of(stored, at)
        assert isinstance(some, RowsOnDisk)
        assert_array_equal(some[3:30], here[at][3:30])
        assert_array_equal(some.of_rows(np.arange(9, 30))[np.array([4, 4, 0])], here[at][[13, 13, 9]])
        assert [len(block) for block in some.blocks([slice(0, 25), slice(25, 40)])] == [25, 15]


def test_an_array_stays_as_it_is():
    with rows_at_hand(X) as same:
        assert same is X
    assert_array_equal(some_rows_of(X, np.array([3, 1])), X[[3, 1]])


def test_each_partition_is_made_once():
    made = []

    def counted(block):
        made.append(len(block))
        return block

    collection = da.from_array(X, chunks=(17, 3)).map_blocks(counted, dtype=X.dtype, meta=X[:0])
    with rows_at_hand(DaskRows(collection)) as stored:
        made_before = list(made)
        assert_array_equal(stored[::-1], X[::-1])
    assert sorted(made) == sorted(made_before) == [16, 17, 17, 17, 17, 17]


def test_texts_of_any_length_come_whole():
    texts = np.array(["a", "bb", "a", "cccc"])
    collection = da.from_array(texts, chunks=2).map_blocks(np.char.upper, dtype="<U1", meta=texts[:0].astype("<U1"))
    assert_array_equal(DaskRows(collection)[:], ["A", "BB", "A", "CCCC"])
