"""`mercer fit --landmarks`: Parquet files from the shell, there and back."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from mercer import load
from mercer.app.cli import app as commands
from mercer.app.cli import predict_rows
from mercer.app.cli.fit_rows import Workers


def mercer(*arguments):
    return CliRunner().invoke(commands.app, [str(each) for each in arguments], env={"COLUMNS": "120"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(600, 3)), columns=["a", "b", "c"])
    frame["y"] = np.sin(frame["a"]) + 0.1 * random.normal(size=600)
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    (tmp_path / "data").mkdir()
    for i in range(3):
        frame[200 * i : 200 * i + 200].to_parquet(f"data/part-{i}.parquet", row_group_size=70)
    return frame


UNTIMED = ("fit", "data", "--out", "model.mercer", "--landmarks", 40)
FIT = (*UNTIMED, "--time-limit", 5)


def test_numbers_there_and_back(folder, monkeypatch):
    monkeypatch.setattr(predict_rows, "ROWS_A_FILE", 250)
    found = json.loads(mercer(*FIT, "--target", "y", "--ignore", "kind", "--json").stdout)
    assert found["rows"] == 600
    assert (found["n_train"], found["n_test"], found["model"]) == (480, 120, "RFMRegressor")
    assert found["scores"]["R^2"] > 0.8
    answer = mercer("predict", "model.mercer", "data", "--out", "answers")
    assert answer.exit_code == 0, answer.output
    assert "Predicted 600 rows" in answer.output
    written = pd.concat([pd.read_parquet(f"answers/part-0000{i}.parquet") for i in range(3)])
    expected = load("model.mercer").predict(folder[["a", "b", "c"]])
    assert_allclose(written["prediction"], expected, rtol=1e-8, atol=1e-10)
    again = mercer("predict", "model.mercer", "data", "--out", "answers")
    assert again.exit_code == 1
    assert "exists already" in again.output


@pytest.mark.parametrize("asked", [1, 3])
def test_as_many_workers_as_are_asked_for(asked):
    pytest.importorskip("distributed")
    with Workers(n_workers=asked).client() as client:
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == asked


def test_classes_have_probabilities(folder):
    assert "accuracy" in mercer(*UNTIMED, "--target", "kind", "--ignore", "y", "--model", "discriminant").output
    mercer("predict", "model.mercer", "data", "--out", "answers")
    written = pd.read_parquet("answers")
    assert list(written.columns) == ["prediction", "p(down)", "p(up)"]
    assert (written["prediction"] == folder["kind"]).mean() > 0.9


def test_wrong_calls_say_so(folder):
    result = mercer(*FIT, "--target", "y")
    assert result.exit_code == 1
    assert "columns of numbers" in result.output
    assert "rows.without" in result.output
    result = mercer(*FIT, "--target", "price")
    assert result.exit_code == 1
    assert "price" in result.output
    result = mercer(*FIT, "--target", "y", "--ignore", "kind", "--workers", 2, "--cluster", "tcp://127.0.0.1:1")
    assert "workers=2 is not allowed" in result.output


def refused(*arguments):
    """Return the error of a call that ends with one, and that reads or writes nothing."""
    result = mercer(*arguments)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--split", "random"), "split='random' is not allowed: split must be left out where --landmarks,"),
        (("--split", "auto"), "split='auto' is not allowed"),  # the default, but the user asked for it
        (("--metric", "mae"), "metric='mae'"),
        (("--repeats", 3), "repeats=3"),
        (("--learning-curve",), "learning_curve=True"),
        (("--kinds", "a=category"), "kinds="),
        (("--no-header",), "header=False"),
        (("--sheet", "1"), "sheet='1'"),
        (("--encoding", "utf-8"), "encoding='utf-8'"),
        (("--decimal", ","), "decimal=','"),
        (("--max-mb", 10), "max_mb=10.0"),
        (("--model", "discriminant"), "time_limit=5.0 is not allowed: time_limit must be left out where"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_fit_refuses_options_that_a_fit_on_landmarks_does_not_read(folder, tmp_path, given, message):
    error = refused(*FIT, "--target", "y", "--ignore", "kind", *given)
    assert message in error
    assert "--target, --out, --force, --model, --task, --ignore, --test-size" in error
    assert not (tmp_path / "model.mercer").exists()


@pytest.mark.parametrize("path", [("--workers", 1), ("--cluster", "tcp://127.0.0.1:1")])
def test_workers_and_clusters_refuse_them_too(folder, path):
    assert "repeats=2" in refused("fit", "data", "--out", "model.mercer", "--target", "y", *path, "--repeats", 2)


def test_a_discriminant_on_landmarks_refuses_a_regression(folder):
    call = (*UNTIMED, "--target", "y", "--ignore", "kind", "--model", "discriminant")
    assert "model='discriminant' is not allowed" in refused(*call, "--task", "regression")


def test_predict_refuses_options_that_models_on_landmarks_do_not_read(folder, tmp_path):
    call = (*UNTIMED, "--model", "discriminant", "--target", "kind", "--ignore", "y")
    assert mercer(*call).exit_code == 0
    predict = ("predict", "model.mercer", "data", "--out", "answers")
    error = refused(*predict, "--level", 0.9)
    assert "level=0.9 is not allowed: level must be left out for a model of `mercer fit --landmarks`" in error
    assert "--out, --json" in error
    assert "why=0" in refused(*predict, "--why", 0)
    assert "safe_csv=True" in refused(*predict, "--safe-csv")
    assert "kinds=" in refused(*predict, "--kinds", "a=number")
    assert not (tmp_path / "answers").exists()
    assert "--out answers" in refused("predict", "model.mercer", "data", "--why", 0)
    assert mercer(*predict, "--json", "--debug").exit_code == 0


@pytest.mark.slow
def test_workers_learn_the_same(folder):
    call = (*FIT, "--target", "y", "--ignore", "kind", "--time-limit", 0)
    mercer(*call)
    here = load("model.mercer")
    result = mercer(*call, "--workers", 2)
    assert result.exit_code == 0, result.output
    X = folder[["a", "b", "c"]]
    assert_allclose(load("model.mercer").predict(X), here.predict(X), rtol=1e-8)
