"""Tables in files: what is written is read, whatever the format, and what is wrong is said in a line."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercer.app.files.tables import (
    check_columns,
    check_model_output,
    check_output,
    check_writable,
    format_of,
    read_table,
    write_table,
)
from mercer.exceptions import DataFileError, DataWarning

ENDINGS = [".csv", ".CSV", ".csv.gz", ".csv.bz2", ".csv.xz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".xlsx"]


def table(n=20):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": random.normal(size=n),
            "count": random.integers(0, 9, n),
            "näme, with; signs": random.choice(["Oslo", "São Paulo", 'a "quoted", one'], n),
            "flag": random.random(n) < 0.5,
        }
    )
    frame.loc[::5, "number"] = np.nan
    frame.loc[3, "näme, with; signs"] = None
    return frame


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(tmp_path, ending):
    path, frame = tmp_path / f"some.table{ending}", table()
    write_table(frame.set_axis(range(100, 120)), path)  # an index of its own is not written
    pd.testing.assert_frame_equal(read_table(path), frame)
    assert [other.name for other in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.bz2", ".csv.xz"])
def test_compressed_files_are_compressed(tmp_path, ending):
    write_table(table(), tmp_path / f"t{ending}")
    assert not (tmp_path / f"t{ending}").read_bytes().startswith(b"number")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / f"t{ending}"), table())


def test_a_path_may_be_a_string(tmp_path):
    write_table(table(), str(tmp_path / "t.csv"))
    assert read_table(str(tmp_path / "t.csv")).shape == (20, 4)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_bytes("\ufeffage,city\n3,Oslo\n".encode())
    assert list(read_table(tmp_path / "t.csv").columns) == ["age", "city"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;b\n1,5;x\n-2,25;y\n", [1.5, -2.25]),
        ("a;b\n1.5;x\n2.5;y\n", [1.5, 2.5]),
        ("a;b\n1,5;x\n;y\n", [1.5, np.nan]),
        ("a;b\n1,5 kg;x\n2;y\n", [1.5, 2.0]),
    ],
)
def test_semicolons_and_decimal_commas(tmp_path, text, values):
    (tmp_path / "t.csv").write_text(text)
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == ["a", "b"]
    np.testing.assert_array_equal(frame["a"].tolist(), values)


def test_a_semicolon_beside_commas_separates_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c\n1,2\n")
    assert list(read_table(tmp_path / "t.csv").columns) == ["a;b", "c"]
    (tmp_path / "t.tsv").write_text("a;b\n1;2\n")
    assert list(read_table(tmp_path / "t.tsv").columns) == ["a", "b"]  # what is in it counts more than its name


def test_the_index_that_pandas_writes_is_left_out(tmp_path):
    table().to_csv(tmp_path / "t.csv")
    with pytest.warns(DataWarning, match="counts the rows"):
        pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), table())


@pytest.mark.parametrize("text", [",b\n1,5\n0,6\n", "Unnamed: 0\n0\n1\n", "id,b\n0,5\n1,6\n", ",b\nx,5\ny,6\n"])
def test_other_first_columns_stay(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert read_table(tmp_path / "t.csv").shape[1] == text.splitlines()[0].count(",") + 1


# ---- what is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".xlsx", ".csv.gz", ".csv.xz"])
@pytest.mark.parametrize("content", [b"age,city\n1,Oslo\n", b"", b"\x00\x01\x02" * 100])
def test_content_that_is_not_what_the_name_says(tmp_path, ending, content):
    path = tmp_path / f"t{ending}"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"t{ending}' cannot be read as") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b'a,b\n"1,2\n3', b"a,b\n1,2\n1,2,3,4\n"])
def test_csv_that_is_none(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataFileError, match="t.csv' cannot be read as CSV"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".feather", ".xlsx"])
def test_half_a_file(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    write_table(table(500), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataFileError, match="cannot be read as"):
        read_table(path)


@pytest.mark.parametrize("text", ["a,b\n1,2,3\n4,5,6\n", "a,b\n0,2,3\n1,5,6\n", "a;b\n1;2;3\n4;5;6\n"])
def test_more_fields_than_names_shift_nothing(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataFileError, match="rows have more fields than its first line has names"):
        read_table(tmp_path / "t.csv")


def test_an_index_in_a_parquet_file_is_no_column(tmp_path):
    table().set_axis([f"r{i}" for i in range(20)]).to_parquet(tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet").columns) == list(table().columns)


def test_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(DataFileError, match="holds no data: it has 0 rows and 2 columns"):
        read_table(tmp_path / "t.csv")


def test_two_columns_of_one_name(tmp_path):
    pd.DataFrame([["u", "v"]], columns=["1", 1]).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(DataFileError, match="two columns '1'"):
        read_table(tmp_path / "t.xlsx")


def test_a_file_that_is_not_there_has_nearest_names(tmp_path):
    (tmp_path / "houses.csv").write_text("a\n1\n")
    with pytest.raises(FileNotFoundError, match=r"no file '.*house.csv' \(nearest: 'houses.csv'\)"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_table(tmp_path / "nowhere" / "house.csv")


def test_folders_and_unknown_endings(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder, where a table was expected: a file that ends in .csv"):
        read_table(tmp_path)
    for name in ("t", "t.txt", "t.gz", "t.parquet.gz", "t.doc.gz"):
        with pytest.raises(DataFileError, match="has no ending that says what table it is: .*.csv, .tsv"):
            format_of(Path(name))


def test_errors_of_the_system_are_its_own(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setattr(pd, "read_csv", refuse)
    with pytest.raises(PermissionError):
        read_table(tmp_path / "t.csv")


def test_columns_that_are_not_there_have_nearest_names():
    check_columns(["age", "city", 3], ["city", "3"])
    with pytest.raises(DataFileError, match=r"no target column 'Citty' \(nearest: 'city'\); it has 'age', 'city'"):
        check_columns(["age", "city"], ["age", "Citty"], "target column")


# ---- before anything is computed ----------------------------------------------------------------------------


def test_places_where_nothing_can_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="create the folder"):
        check_writable(tmp_path / "nowhere" / "t.csv")
    with pytest.raises(DataFileError, match="no ending that says"):
        check_writable(tmp_path / "t.txt")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="give the name of a file in it"):
        check_writable(tmp_path / "t.csv")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    for check in (check_writable, check_output, check_model_output):
        with pytest.raises(PermissionError, match="you may not write into the folder"):
            check(tmp_path / "new.csv")


@pytest.mark.parametrize(
    ("ending", "engine"), [(".parquet", "pyarrow"), (".feather", "pyarrow"), (".xlsx", "openpyxl")]
)
def test_engines_that_are_not_installed(tmp_path, monkeypatch, ending, engine):
    write_table(table(), tmp_path / f"there{ending}")
    monkeypatch.setitem(sys.modules, engine, None)
    for use in (check_writable, read_table):
        with pytest.raises(ModuleNotFoundError, match=rf'needs {engine}: pip install "mercer\[files\]"'):
            use(tmp_path / f"there{ending}")


def test_what_is_read_is_not_written_over(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(data)
    for out in (data, tmp_path / "." / "t.csv", tmp_path / "link.csv"):
        for check in (check_writable, check_output, check_model_output):
            with pytest.raises(DataFileError, match="is a file that is read"):
                check(out, read=[tmp_path / "other", data])
    assert check_writable(tmp_path / "other.csv", read=[data]).name == "CSV"


@pytest.mark.parametrize("name", ["model.csv", "model.PARQUET", "model.csv.gz"])
def test_models_are_no_tables(tmp_path, name):
    check_model_output(tmp_path / "model.mercer")
    check_model_output(tmp_path / "model")
    with pytest.raises(DataFileError, match="has the ending of a table: .* such as '.mercer'"):
        check_model_output(tmp_path / name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch, error):
    path = tmp_path / "t.csv"
    path.write_text("before")

    def half(self, buffer, **options):
        buffer.write(b"half a ta")
        raise error

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    with pytest.raises(error):
        write_table(table(), path)
    assert path.read_text() == "before"
    assert [other.name for other in tmp_path.iterdir()] == ["t.csv"]


def test_a_gzip_file_that_pandas_wrote(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(tmp_path / "t.csv.gz").to_dict("list") == {"a": [1], "b": [2]}
