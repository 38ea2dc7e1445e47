"""Files as people have them are read as a person would read them, or a line says what is asked."""

import json
import re

import pandas as pd
import pytest

from mercer.app.cli.output import plain
from mercer.app.files.reading import ReadOptions, read_described
from mercer.exceptions import DataFileError, InvalidParameterError
from tests.app.files.nasty_files import NASTY


def written(nasty, folder):
    path = folder / nasty.name
    content = nasty.content
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("nasty", NASTY, ids=lambda nasty: nasty.title)
def test_a_file_is_read_as_a_person_would(nasty, tmp_path):
    path = written(nasty, tmp_path)
    options = ReadOptions(**nasty.options)
    if nasty.error:
        with pytest.raises((DataFileError, InvalidParameterError), match=nasty.error) as caught:
            read_described(path, options)
        assert "\n" not in str(caught.value)
        return
    table = read_described(path, options)
    assert {column.name: column.reading.kind for column in table.columns} == nasty.kinds
    assert len(table) == nasty.n_rows
    for name, values in nasty.values.items():
        for value, expected in zip(table.frame[name], values, strict=False):
            assert pd.isna(value) if expected is None else value == expected, (name, value, expected)
    if nasty.note:
        assert re.search(nasty.note, " ".join(table.notes)), table.notes
    else:
        assert table.notes == []
    described = json.loads(json.dumps(plain(table.describe()), allow_nan=False))
    assert described["rows"] == nasty.n_rows
    assert [column["kind"] for column in described["columns"]] == list(nasty.kinds.values())
    for column in table.columns:
        kind, letter = column.reading.kind, table.frame[column.name].dtype.kind
        assert column.reason
        assert column.n_missing + column.n_unreadable == table.frame[column.name].isna().sum()
        assert letter in {"number": "biuf", "date": "M", "category": "O", "text": "O", "missing": "Of"}[kind]


def test_dates_of_new_rows_may_be_written_otherwise_if_they_mean_one_day(tmp_path):
    (tmp_path / "fit.csv").write_text("d,a\n31.01.2024,1\n01.02.2024,2\n")
    (tmp_path / "new.csv").write_text("d,a\n2024-02-03,1\n04.03.2024,2\n05/06/2024,3\n")
    readings = read_described(tmp_path / "fit.csv").readings
    new = read_described(tmp_path / "new.csv", names=["d", "a"], readings=readings)
    assert new.frame["d"].tolist()[:2] == [pd.Timestamp(2024, 2, 3), pd.Timestamp(2024, 3, 4)]
    assert new.unreadable == {"d": 1}  # the fifth of June, or the sixth of May


def test_there_are_many():
    assert len(NASTY) >= 60
    assert len({nasty.title for nasty in NASTY}) == len(NASTY)


@pytest.mark.parametrize("nasty", [n for n in NASTY if not n.error], ids=lambda nasty: nasty.title)
def test_what_was_read_is_read_alike_by_a_model(nasty, tmp_path):
    """With the readings of a fit, the same file gives the same values, and so does one row of it."""
    path = written(nasty, tmp_path)
    options = ReadOptions(**nasty.options)
    table = read_described(path, options)
    names = [name for name in table.frame.columns if not name.startswith("column_")]
    again = read_described(path, options._replace(kinds=None), names=names, readings=table.readings)
    pd.testing.assert_frame_equal(again.frame, table.frame)
    assert {name: reading.kind for name, reading in again.readings.items()} == nasty.kinds
