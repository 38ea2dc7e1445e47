"""The numbers under the README's first picture are those that `mercer demo` prints beside it."""

import re
from pathlib import Path

from typer.testing import CliRunner

from mercer.app.cli import demo
from mercer.app.cli.app import app

README = Path(__file__).resolve().parents[3] / "README.md"


def test_the_error_falls_as_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "STAGES", demo.STAGES[:1])
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    line = next(line for line in result.output.splitlines() if "made: y =" in line and "0." in line)
    plain, learned = (float(number) for number in re.findall(r"0\.\d{3}", line)[:2])
    said = re.search(r"falls from ([\d.]+) to ([\d.]+)\.", README.read_text())
    assert said, "the README says from where to where the error falls"
    assert (f"{plain:.2f}", f"{learned:.2f}") == said.groups()
    assert (tmp_path / "metric-made.png").exists()
