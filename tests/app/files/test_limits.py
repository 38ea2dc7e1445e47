"""Tables that would take all memory or all time, or are not what they seem, are refused before they are parsed."""

import bz2
import contextlib
import gzip
import lzma
import os
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mercer.app.files import limits
from mercer.app.files.arrow_sizes import feather_size
from mercer.app.files.tables import read_table, write_table
from mercer.app.files.text_sizes import growing_text_size
from mercer.exceptions import DataFileError, InvalidParameterError
from mercer.tables.readers import Numbers


def test_a_pipe_is_refused_unread(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataFileError, match=r"pipe\.csv' is a device, a pipe or a socket"):
        read_table(tmp_path / "pipe.csv")


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_a_packed_table_unpacks_to_a_limit(ending, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PACKED_MIB", 1.0)
    path = tmp_path / f"zeros.csv.{ending}"
    path.write_bytes(pack(b"a,b\n" + b"0,0\n" * 500_000))
    with pytest.raises(DataFileError, match=r"more than 1 MiB of text.*--max-mb \d+ \(max_mb in Python\)"):
        read_table(path)
    assert len(read_table(path, max_mb=100)) == 500_000
    with pytest.raises(InvalidParameterError, match="max_mb=-1"):
        read_table(path, max_mb=-1)


def test_one_endless_line_is_refused(tmp_path):
    path = tmp_path / "line.csv"
    path.write_bytes(b"name," * 10_000_000)
    with pytest.raises(DataFileError, match="first line of 20[0-9]+ or more names"):
        read_table(path)
    path.write_bytes(b"n" * 6 * 2**20)
    with pytest.raises(DataFileError, match="first line of 1 or more names, of"):
        read_table(path)


def test_many_columns_and_many_short_lines_are_refused(tmp_path):
    path = tmp_path / "short.csv"
    path.write_bytes(",".join(f"c{i}" for i in range(19_000)).encode() + b"\n" + b"1\n" * 100_000)
    with pytest.raises(DataFileError, match="19000 columns and 100002 or more lines"):
        read_table(path)


def test_an_excel_file_that_unpacks_too_far_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PACKED_MIB", 1.0)
    path = tmp_path / "table.xlsx"
    pd.DataFrame({"a": [1.0]}).to_excel(path, index=False)
    assert read_table(path).shape == (1, 1)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(2 * 2**20))
    with pytest.raises(DataFileError, match="holds 2 MiB"):
        read_table(path)


def test_a_parquet_file_of_too_many_numbers_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame(np.zeros((200_000, 3)), columns=list("abc")).to_parquet(path)
    assert read_table(path).shape == (200_000, 3)
    with pytest.raises(DataFileError, match="200000 rows and 3 columns"):
        read_table(path, max_mb=4)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_the_size_of_a_feather_file_is_that_of_its_buffers(compression, tmp_path):
    path = tmp_path / "table.feather"
    texts = ["x", "yy", None] * 50_000  # more than one batch of rows
    frame = pd.DataFrame({"a": np.zeros(150_000), "t": texts, "c": pd.Categorical(texts)})
    frame.to_feather(path, compression=compression)
    with open(path, "rb") as file:
        rows, columns, n_bytes = feather_size(file)
    assert (rows, columns) == frame.shape
    assert n_bytes == pytest.approx(pyarrow.feather.read_table(path).nbytes, rel=1e-3)
    assert read_table(path).shape == frame.shape
    with pytest.raises(DataFileError, match="150000 rows and 3 columns.*--max-mb"):
        read_table(path, max_mb=2)


def test_feather_files_that_unpack_too_far_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_MIB", 16.0)
    path = tmp_path / "table.feather"
    made = {
        "zeros": pa.table({"a": np.zeros(4_000_000)}),
        "one long text": pa.table({"a": ["x" * 20_000_000]}),
        "nothing at all": pa.table({"a": pa.nulls(10**7)}),
        "a long level": pa.table({"a": pa.array(["x" * 20_000_000]).dictionary_encode()}),
    }
    for name, table in made.items():
        pyarrow.feather.write_feather(table, path, compression="zstd")
        assert path.stat().st_size < 100_000, name
        with pytest.raises(DataFileError, match="rows and 1 columns, which is more than the limit for a table"):
            read_table(path)


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_lists_are_no_cells(ending, tmp_path):
    path, table = tmp_path / f"table.{ending}", pa.table({"a": [[1, 2], [3]]})
    (pyarrow.feather.write_feather if ending == "feather" else pyarrow.parquet.write_table)(table, path)
    with pytest.raises(DataFileError, match="'a.*' holds lists or records"):
        read_table(path)


def test_damaged_feather_files_are_refused_in_plain_words(tmp_path):
    """The size is read from the file by our own code: whatever the bytes are, it must not break."""
    path = tmp_path / "table.feather"
    pd.DataFrame({"a": np.arange(40.0), "t": list("abcd") * 10}).to_feather(path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in random.integers(len(whole), size=random.integers(1, 9)):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged[: random.integers(len(whole) // 2, 2 * len(whole))])
        with contextlib.suppress(DataFileError):
            read_table(path)
    path.write_bytes(b"FEA1" + whole)
    with pytest.raises(DataFileError, match="first version, which is not read any more"):
        read_table(path)


def test_a_text_that_a_parquet_file_stores_once_counts_as_often_as_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_MIB", 16.0)
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": np.arange(2000.0), "t": ["x" * 10_000] * 2000}).to_parquet(path)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataFileError, match="more than 16 MiB of text.*--max-mb"):
        read_table(path)
    assert read_table(path, max_mb=100).shape == (2000, 2)
    pd.DataFrame({"t": ["x", None, "yy"] * 30_000, "b": [b"z"] * 90_000}).to_parquet(path)
    with open(path, "rb") as file:
        assert list(growing_text_size(file))[-1] == pytest.approx(30_000 * 3 + 90_000, rel=0.01)


def test_an_excel_sheet_with_a_cell_far_away_is_refused(tmp_path):
    path, book = tmp_path / "table.xlsx", openpyxl.Workbook()
    book.active["A1"], book.active["XFD2"], book.active["A60000"] = "a", 1, 2
    book.save(path)
    with pytest.raises(DataFileError, match="or more cells, empty ones among them"):
        read_table(path)


@pytest.mark.parametrize("text", ["a,b,a\n1,2,3\n", "a;b;a\n1;2;3\n"])
def test_two_columns_of_one_name_are_refused(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataFileError, match="has two columns 'a'"):
        read_table(path)
    path.write_text(text.replace("b", ""))
    with pytest.raises(DataFileError, match="has two columns 'a'"):
        read_table(path)
    excel = tmp_path / "table.xlsx"
    pd.DataFrame([[1, 2]], columns=["a", "a"]).to_excel(excel, index=False)
    with pytest.raises(DataFileError, match="has two columns 'a'"):
        read_table(excel)


def test_names_that_pandas_would_make_are_names(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,a.1,,\n1,2,3,4\n")
    assert list(read_table(path).columns) == ["a", "a.1", "Unnamed: 2", "Unnamed: 3"]


def test_nul_characters_are_refused_in_files_and_are_no_part_of_a_number(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n1\0,2\n")
    with pytest.raises(DataFileError, match="has NUL characters, near byte 5"):
        read_table(path)
    path.write_text("a,b\n1,2\n", encoding="utf-16")
    assert read_table(path).to_dict("list") == {"a": [1], "b": [2]}
    column = pd.Series(["1\0", "2.5\0\0", "x\0", None], dtype=object, name="a")
    np.testing.assert_array_equal(Numbers().read(column).raw[:, 0], [1.0, 2.5, np.nan, np.nan])


def test_texts_that_spreadsheets_take_for_formulas(tmp_path):
    frame = pd.DataFrame({"=name": ["=1+1", "@x", "-a", "plain", None], "number": [-1.0, 2.0, 3.0, 4.0, 5.0]})
    write_table(frame, tmp_path / "plain.csv")
    assert "\n=1+1," in (tmp_path / "plain.csv").read_text()
    write_table(frame, tmp_path / "safe.csv", safe_csv=True)
    lines = (tmp_path / "safe.csv").read_text().splitlines()
    assert lines == ["'=name,number", "'=1+1,-1.0", "'@x,2.0", "'-a,3.0", "plain,4.0", ",5.0"]
    assert list(frame.columns) == ["=name", "number"]
