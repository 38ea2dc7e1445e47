"""Every example runs as it stands, asks a question, and leaves the figure that is its answer."""

import ast
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_title_is_a_question(path):
    title, empty, *introduction = ast.get_docstring(ast.parse(path.read_text())).split("\n")
    assert title.endswith("?")
    assert not empty
    assert introduction


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_leaves_a_figure(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert [file.name for file in tmp_path.iterdir()] == [f"{path.stem}.png"]
    assert plt.imread(f"{path.stem}.png").std() > 0, "a blank sheet is no answer"
