"""The command line, as a person runs it."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner


def test_demo_prints_its_tables_and_writes_its_figures(tmp_path):
    from mercer.cli.app import app

    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new" / "folder")], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    figures = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert figures == ["discriminants-digits.png", "embedding-digits.png", "metric-made.png", "metric-wine.png"]
    assert str(tmp_path) in result.output
    plain, learned = map(float, re.search(r"made.*?(0\.\d+).*?(0\.\d+)", result.output, re.DOTALL).groups())
    assert learned < 0.5 * plain
    assert re.search(r"direction with 7\d\.\d% of the metric: \+0\.7\d x[01] \+0\.\d+ x[01]", result.output)


def test_help_is_there_and_names_the_commands():
    out = subprocess.run([sys.executable, "-m", "mercer", "--help"], capture_output=True, text=True, check=True).stdout
    assert "demo" in out


def test_without_typer_the_command_says_what_to_install(monkeypatch):
    from mercer import cli

    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "mercer.cli.app", raising=False)
    with pytest.raises(SystemExit, match=r"pip install 'mercer\[cli\]'"):
        cli.main()
