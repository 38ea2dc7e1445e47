"""Tables that would take all memory or all time, or are not what they seem, are refused before they are parsed."""

import bz2
import gzip
import lzma
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

from mercer.app.files import limits
from mercer.app.files.tables import read_table, write_table
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
