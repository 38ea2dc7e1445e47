"""The README's commands run as they are written, on files of the names that they have."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from benchmarks.report_page import rented_flats
from mercer.app.cli.app import app

README = Path(__file__).resolve().parents[3] / "README.md"


def commands():
    """The lines of the README that begin with `mercer`, without their comments."""
    return [line.partition("#")[0].strip() for line in README.read_text().splitlines() if line.startswith("mercer ")]


def test_the_readme_shows_each_task_once():
    assert [line.split()[1] for line in commands()] == ["fit", "predict", "embed", "cluster", "report", "explore"]


@pytest.mark.slow
def test_the_commands_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flats = rented_flats(260).rename(columns={"rent": "price"})
    flats[:200].to_csv("houses.csv", index=False)
    flats[200:].drop(columns="price").to_csv("new.csv", index=False)
    flats.drop(columns="price").to_parquet("customers.parquet")
    Path("photographs").mkdir()
    for i, image in enumerate(load_digits().images[:120]):
        Image.fromarray((image * 15).astype(np.uint8)).save(f"photographs/{i:03}.png")
    for line in commands()[:-1]:  # the last one serves a page until it is stopped; tests/app/explore have it
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    for name in ("price.mercer", "answers.csv", "map.csv", "groups.csv", "page.html"):
        assert Path(name).stat().st_size > 0, name
