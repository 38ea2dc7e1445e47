"""What the page Start shows of `mercer fit` is what the command prints."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercer.app.cli.app import app

PAGE = Path(__file__).resolve().parents[3] / "docs" / "start.md"


def plain(text):
    """A text without the lines of tables, bars and runs of spaces."""
    return " ".join(re.sub(r"[┃│┏┳┓┡╇┩└┴┘━─█]", " ", text).split())


@pytest.mark.slow
def test_the_page_shows_what_the_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    command = re.search(r"^\$ mercer (fit patients\.csv .*)$", text, re.MULTILINE)[1]
    result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    printed = plain(result.output)
    shown = re.search(r"```\n\$ mercer fit [^\n]*\n(.*?)```", text, re.DOTALL)[1]
    for line in shown.splitlines():
        assert line == "..." or plain(line) in printed, line
