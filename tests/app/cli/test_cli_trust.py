"""The command line on hostile words and files."""

import os

import pandas as pd
import pytest

from mercer.app.cli.output import notes, out_console
from tests.faults.commands import prepared, run


def test_control_characters_are_spelled_out(capsys):
    out_console().print("a \x1b[31mred\x07 column")
    assert capsys.readouterr().out == "a \\x1b[31mred\\x07 column\n"
    with notes():
        import warnings

        from mercer.exceptions import DataWarning

        warnings.warn("b\x1b]0;title\x07" + "x" * 10_000, DataWarning, stacklevel=1)
    err = capsys.readouterr().err
    assert err.startswith("note: b\\x1b]0;title\\x07")
    assert len(err) < 2200


@pytest.fixture
def folder(tmp_path):
    prepared(tmp_path)
    return tmp_path


def test_a_column_with_an_escape_sequence_is_shown_escaped(folder):
    pd.DataFrame({"\x1b[31mn": [1.0, 2.0], "c": ["a", "b"]}).to_csv(folder / "table.csv", index=False)
    code, message = run("predict", folder)
    assert code == 1
    assert "\x1b" not in message
    os.unlink(folder / "table.csv")
    os.mkfifo(folder / "table.csv")
    code, message = run("predict", folder)
    assert code == 1
    assert "is a device, a pipe or a socket" in message
