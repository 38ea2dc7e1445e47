"""The score that `mercer fit` prints is that of `mercer predict` and a script on the same rows, on every nasty file."""

import re

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.app.files.reading import ReadOptions, read_described
from mercer.app.projects import table_prediction
from mercer.app.projects.stages import TIME_LIMIT
from mercer.app.projects.table_estimators import make
from mercer.app.report.words import percent, score_texts
from tests.app.cli.test_cli_tables import mercer_command
from tests.app.files.nasty_files import NASTY
from tests.app.files.test_nasty_files import written
from tests.app.projects.test_table_prediction import SIMPLE

FLAGS = {"header": {True: ["--header"], False: ["--no-header"], None: []}}
# Fewer rows leave nothing to learn from and to score on.
FEWEST_ROWS = 3


def flags_of(options):
    """Return the options of a reading as they are typed."""
    typed = list(FLAGS["header"][options.get("header")])
    for name in ("sheet", "encoding", "decimal"):
        typed += [f"--{name}", str(options[name])] if options.get(name) is not None else []
    kinds = ",".join(f"{name}={kind}" for name, kind in (options.get("kinds") or {}).items())
    return [*typed, *(["--kinds", kinds] if kinds else [])]


def targets_of(table):
    """Yield the columns that may be predicted: numbers and categories, where rows enough have one."""
    for column in table.columns:
        known = table.frame[column.name].dropna()
        if column.reading.kind in ("number", "category") and len(known) >= FEWEST_ROWS and known.nunique() > 1:
            yield column.name, "regression" if column.reading.kind == "number" else "classification"


@pytest.fixture(autouse=True)
def scored_model_is_kept(monkeypatch):
    """One kernel, and no fit on all rows: the model that is saved is the one that was scored."""
    monkeypatch.setattr(
        table_prediction, "make", lambda name, task, n, seed, options, limit: make("rfm", task, n, seed, SIMPLE, limit)
    )
    monkeypatch.setattr(table_prediction, "fit_all", lambda fit, best, n, watch: best._replace(stopped=TIME_LIMIT))


def fit_and_predict(nasty, folder):
    """Return whether some column could be fitted; the scores are checked on the way."""
    path = written(nasty, folder)
    flags = flags_of(nasty.options)
    table = read_described(path, ReadOptions(**nasty.options))
    for target, task in targets_of(table):
        model, answer = folder / "m.mercer", folder / "answer.csv"
        options = ["--target", target, "--out", model, "--task", task, "--test-size", "0.4", "--split", "random"]
        fitted = mercer_command("fit", path, *options, *flags, width=200)
        assert "Traceback" not in fitted.output
        if fitted.exit_code:
            assert fitted.exit_code == 1
            assert fitted.stderr.count("error: ") == 1
            continue
        # Kinds are those of the fit: they are not asked for again.
        reading = flags[: flags.index("--kinds")] if "--kinds" in flags else flags
        predicted = mercer_command("predict", model, path, "--out", answer, *reading)
        assert predicted.exit_code == 0, predicted.output
        rows = mercer.load(model).held_out_["rows"]
        guess = pd.read_csv(answer)["prediction"].iloc[rows]
        truth = table.frame[target].iloc[rows]
        line = next(row for row in fitted.stdout.splitlines() if "Mercer RFM" in row)
        cells = [cell.strip() for cell in re.split(r"[│┃]", line)]
        if task == "classification":
            right = [str(a) == str(b) or _as_number(a) == _as_number(b) for a, b in zip(guess, truth, strict=True)]
            assert cells[2] == percent(float(np.mean(right)))
        else:
            errors = guess.to_numpy(dtype=float) - truth.to_numpy(dtype=float)
            saved = mercer.load(model).scores_
            mine = [float(np.sqrt(np.mean(errors**2))), *(entry["rmse"] for entry in saved[1:])]
            assert cells[2] == score_texts("rmse", mine)[0]
        return True
    return False


def _as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


READABLE = [nasty for nasty in NASTY if not nasty.error and nasty.n_rows >= FEWEST_ROWS]


@pytest.mark.parametrize("nasty", READABLE[::40], ids=lambda nasty: nasty.title)
def test_scores_of_some_nasty_files(nasty, tmp_path):
    fit_and_predict(nasty, tmp_path)


# Files of which nothing can be learned, each for a reason that `mercer fit` names: no column beside the target, no
# input that varies, or no target but texts and categories of which each of three rows has another.
NOT_FITTED = {
    "one column of sentences",
    "most rows too short",
    "two units",
    "signs of nothing",
    "true, false and nothing",
    "JSON lines",
}


@pytest.mark.slow
def test_scores_of_every_nasty_file(tmp_path):
    done = []
    for place, nasty in enumerate(READABLE):
        folder = tmp_path / str(place)
        folder.mkdir()
        done.append(fit_and_predict(nasty, folder))
    not_fitted = {nasty.title for nasty, fitted in zip(READABLE, done, strict=True) if not fitted}
    assert not_fitted <= NOT_FITTED
