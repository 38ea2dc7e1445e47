"""Rows of files: each comes once and in order, whatever row groups and blocks are, and bad ones are named."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer.blocks import row_slices
from mercer.exceptions import DataFileError, InvalidParameterError
from mercer.rows import files as files_module
from mercer.rows import open_rows
from tests.examples_of import QUICK, numbers

X = numbers(101, 3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.arange(101) % 3, word=[f"w{i}" for i in range(101)])


@pytest.fixture
def folder(tmp_path):
    """The frame in files of 40, 0, 60 and 1 rows, with row groups of 7."""
    for i, (start, stop) in enumerate([(0, 40), (40, 40), (40, 100), (100, 101)]):
        pq.write_table(pa.Table.from_pandas(FRAME[start:stop]), tmp_path / f"part-{i}.parquet", row_group_size=7)
    return tmp_path


def test_all_rows_come_in_order_in_blocks_of_any_size(folder):
    rows = open_rows(folder).without("y", "word")
    assert rows.shape == (101, 3)
    assert rows.names == ("a", "b", "c")

    @settings(QUICK, max_examples=12)
    @given(st.integers(1, 120), st.integers(0, 60))
    def check(size, start):
        bounds = [slice(start + part.start, start + part.stop) for part in row_slices(101 - start, size)]
        parts = list(rows.blocks(bounds))
        assert [len(part) for part in parts] == [part.stop - part.start for part in bounds]
        assert_array_equal(np.concatenate(parts), X[start:])
        for part, bound in zip(rows.parts(bounds), bounds, strict=True):
            assert len(part.pieces) <= size // 7 + 3
            assert_array_equal(part[:], X[bound])

    check()


def test_batches_smaller_than_row_groups_come_in_order(folder, monkeypatch):
    monkeypatch.setattr(files_module, "ROWS_A_BATCH", 3)
    rows = open_rows(folder).without("y", "word")
    assert_array_equal(rows[5:77], X[5:77])
    assert_array_equal(rows[np.array([99, 3, 3, 40])], X[[99, 3, 3, 40]])
    part = rows.between(slice(9, 50))
    assert_array_equal(part[2:30], X[11:39])
    assert_array_equal(part.between(slice(3, 41))[np.array([37, 0])], X[[49, 12]])
    assert len(rows.between(slice(101, 101))) == 0


@settings(QUICK, max_examples=12)
@given(st.lists(st.integers(0, 100), max_size=30))
def test_rows_by_number(tmp_path_factory, index):
    folder = tmp_path_factory.getbasetemp() / "by-number"
    if not folder.exists():
        folder.mkdir()
        pq.write_table(pa.Table.from_pandas(FRAME), folder / "all.parquet", row_group_size=9)
    rows = open_rows(folder / "all.parquet")
    at = np.array(index, dtype=np.intp)
    assert_array_equal(rows.without("word", "y")[at], X[at])
    assert_array_equal(rows.column("word")[at], FRAME["word"].to_numpy()[at])


def test_columns_by_themselves_keep_their_kind(folder):
    rows = open_rows(folder)
    assert rows.column("y").dtype == np.int64
    assert_array_equal(rows.column("y")[:], FRAME["y"])
    assert_array_equal(rows.column("word")[90:], FRAME["word"][90:])
    assert rows.column("a").dtype == np.float64
    with pytest.raises(InvalidParameterError, match=r"column='d' is not allowed.*'a', 'b', 'c'"):
        rows.column("d")


def test_a_pattern_a_list_and_arrow_files_are_the_same_rows(folder, tmp_path):
    wanted = open_rows(folder, ["a", "c"])[:]
    assert_array_equal(open_rows(f"{folder}/part-*.parquet", ["a", "c"])[:], wanted)
    assert_array_equal(open_rows([folder / f"part-{i}.parquet" for i in range(4)], ["a", "c"])[:], wanted)
    FRAME.to_feather(tmp_path / "all.arrow")
    assert_array_equal(open_rows(tmp_path / "all.arrow", ["a", "c"])[:], wanted)


def test_keys_of_folders_are_columns(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        FRAME[:5][["a"]].to_parquet(tmp_path / f"year={year}" / "x.parquet")
    rows = open_rows(tmp_path)
    assert rows.names == ("a", "year")
    assert_array_equal(rows[:][:, 1], np.repeat([2023.0, 2024.0], 5))


def test_a_numpy_file_is_a_memory_map(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert isinstance(open_rows(tmp_path / "x.npy"), np.memmap)


def test_single_precision_stays(tmp_path):
    FRAME[["a", "b"]].astype(np.float32).to_parquet(tmp_path / "x.parquet")
    assert open_rows(tmp_path).dtype == np.float32


# ---- bad input -----------------------------------------------------------------------------------------------


def test_a_missing_value_names_file_row_group_column_and_row(folder):
    bad = FRAME[40:100].copy()
    bad.loc[57, "b"] = np.nan
    pq.write_table(pa.Table.from_pandas(bad), folder / "part-2.parquet", row_group_size=7)
    rows = open_rows(folder).without("y", "word")
    place = r"row group 2 of \S*part-2.parquet has a missing value \(NaN\) in column 'b' of row 57 "
    with pytest.raises(DataFileError, match=place):
        rows[50:60]
    with pytest.raises(DataFileError, match=place):
        rows[np.array([3, 57])]
    (part,) = rows.parts([slice(50, 60)])
    with pytest.raises(DataFileError, match=place):
        part[:]
    assert_array_equal(rows[:57], X[:57])


@pytest.mark.parametrize("column", ["y", "word"])
def test_a_missing_label_is_named(folder, column):
    bad = FRAME[100:].copy().astype({"y": "Int64"})
    bad.loc[100, column] = None
    bad.to_parquet(folder / "part-3.parquet")
    with pytest.raises(DataFileError, match=r"row group 0 of \S*part-3.parquet has a missing.* of row 100"):
        open_rows(folder).column(column)[95:]


def test_a_number_too_large_to_be_squared_is_named(tmp_path):
    FRAME[["a"]].assign(b=1e200).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match=r"row group 0 of \S*x.parquet has the number 1e\+200.*'b' of row 0"):
        open_rows(tmp_path)[:]


def test_kinds_that_differ_between_files(folder):
    FRAME[:5].assign(b="seven").to_parquet(folder / "part-4.parquet")
    with pytest.raises(
        DataFileError, match=r"column 'b' is of kind text in \S*part-4.parquet, and float64 in \S*part-0"
    ):
        open_rows(folder)
    FRAME[:5].assign(b=7).to_parquet(folder / "part-4.parquet")
    assert open_rows(folder, ["b"])[:][-1, 0] == 7.0


def test_a_column_that_one_file_lacks(folder):
    FRAME[["a", "b"]].to_parquet(folder / "part-4.parquet")
    with pytest.raises(DataFileError, match=r"part-4.parquet has no column 'c', and \S*part-0.parquet has"):
        open_rows(folder)
    assert open_rows(folder, ["a"]).shape == (202, 1)


def test_a_file_that_vanishes(folder):
    rows = open_rows(folder).without("y", "word")
    os.remove(folder / "part-2.parquet")
    assert_array_equal(rows[:40], X[:40])
    with pytest.raises(DataFileError, match=r"row group 0 of \S*part-2.parquet cannot be read"):
        rows[30:50]


def test_a_file_that_is_not_there_and_one_that_is_no_parquet(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"path='.*none.parquet' is not allowed"):
        open_rows(tmp_path / "none.parquet")
    with pytest.raises(InvalidParameterError, match=r"path='.*' is not allowed.*has Parquet or Arrow files"):
        open_rows(tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataFileError, match=r"x.parquet cannot be read"):
        open_rows(tmp_path)
    FRAME.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidParameterError, match="columns"):
        open_rows(tmp_path, ["nothing"])
