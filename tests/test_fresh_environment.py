"""The commands as a stranger has them: installed into an environment of their own, on files, without a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.app.projects.test_table_prediction import flats

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mercer(tmp_path_factory):
    """A function that runs the `mercer` of a new environment in a folder of its own."""
    home = tmp_path_factory.mktemp("stranger")
    python = home / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    for command in (
        [sys.executable, "-m", "venv", home / "venv"],
        [*pip, "torch"],  # first and pinned: asked for by another package it would bring gigabytes
        [*pip, f"{ROOT}[cli,files,plots]"],
    ):
        subprocess.run(command, check=True, cwd=home)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MERCER_DATA")}

    def run(*args, code=0):
        command = [home / "venv" / "bin" / "mercer", *map(str, args)]
        result = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert result.returncode == code, result.stdout + result.stderr
        return result

    run.home = home
    return run


def test_a_table_to_predictions(mercer):
    flats().to_csv(mercer.home / "flats.csv", index=False)
    flats(20, seed=1).drop(columns=["rent", "dear"]).to_csv(mercer.home / "new.csv", index=False)
    out = mercer(
        "fit",
        "flats.csv",
        "--target",
        "rent",
        "--ignore",
        "id",
        "--ignore",
        "dear",
        "--time-limit",
        5,
        "--out",
        "model.mercer",
        "--json",
    ).stdout
    fitted = json.loads(out)
    assert fitted["task"] == "regression"
    assert fitted["scores"][0]["rmse"] < 0.5 * fitted["scores"][1]["rmse"]
    assert fitted["importances"]["size"] + fitted["importances"]["city"] > 0.8
    mercer("predict", "model.mercer", "new.csv", "--out", "answers.csv")
    answers = pd.read_csv(mercer.home / "answers.csv")
    assert len(answers) == 20
    assert (answers["lower"] < answers["prediction"]).all()
    page = mercer.home / "page.html"
    mercer("report", "model.mercer", "flats.csv", "--out", page)
    assert page.read_text().startswith("<!")


def test_a_folder_of_images_to_a_map_and_to_clusters(mercer):
    digits = load_digits()
    folder = mercer.home / "digits"
    folder.mkdir()
    kept = np.flatnonzero(digits.target < 3)[:150]
    for i in kept:
        Image.fromarray((digits.images[i] * 15).astype(np.uint8)).save(folder / f"{i:04}.png")
    mercer("embed", "digits", "--n-components", 8, "--out", "map.csv")
    assert len(pd.read_csv(mercer.home / "map.csv")) == 150
    mercer("cluster", "digits", "--n-clusters", 3, "--out", "groups.csv")
    groups = pd.read_csv(mercer.home / "groups.csv")
    classes = digits.target[[int(Path(name).stem) for name in groups["name"]]]
    agreed = pd.crosstab(groups["cluster"], classes).max(axis=1).sum()
    assert agreed >= 0.9 * 150


def test_elsewhere_than_in_a_checkout_the_papers_cannot_be_run(mercer):
    assert "repository" in mercer("reproduce", "krepes", code=1).stderr
    assert "mnist" in mercer("data", "list").stdout


def test_errors_are_for_people(mercer):
    (mercer.home / "flats.csv").exists() or flats().to_csv(mercer.home / "flats.csv", index=False)
    result = mercer("fit", "flats.csv", "--target", "rend", "--out", "no.mercer", code=1)
    assert "nearest: 'rent'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (mercer.home / "no.mercer").exists()
