"""`mercer fit` and `mercer predict`, as a person runs them on files."""

import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mercer
from mercer.app.cli.app import app
from mercer.app.cli.output import (
    bar,
    err_console,
    notes,
    number,
    out_console,
    plain,
    print_json,
    progress,
    waiting,
)
from mercer.app.projects import table_prediction
from mercer.app.projects.table_estimators import make
from mercer.app.report.verdict import verdict_of
from mercer.exceptions import ConvergenceWarning, DataWarning
from tests.app.projects.test_table_prediction import SIMPLE, flats


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One kernel in place of the search, but for discriminants, which are quick."""

    def make_simple(name, task, n_rows, seed, options, time_limit):
        return make(name, task, n_rows, seed, options if name == "discriminant" else SIMPLE, time_limit)

    monkeypatch.setattr(table_prediction, "make", make_simple)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that is the current one, with a table and new rows."""
    monkeypatch.chdir(tmp_path)
    flats().to_csv("flats.csv", index=False)
    flats(20, seed=1).drop(columns=["rent", "dear"]).to_csv("new.csv", index=False)
    return tmp_path


def mercer_command(*args, width=100):
    return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": str(width)})


def done(*args, **options):
    result = mercer_command(*args, **options)
    assert result.exit_code == 0, result.output
    return result


def failed(*args, code=1):
    result = mercer_command(*args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


FIT = ("fit", "flats.csv", "--out", "model.mercer", "--ignore", "id")
NUMBERS = (*FIT, "--target", "rent", "--ignore", "dear")
CLASSES = (*FIT, "--target", "dear", "--ignore", "rent", "--model", "discriminant")


# ---- there and back ------------------------------------------------------------------------------------------


def test_fit_says_how_well_and_why(folder):
    result = done(*NUMBERS)
    out = result.stdout
    assert "Read 150 rows and 5 inputs (2 numbers, 1 category, 1 date, 1 constant) from flats.csv" in out
    assert "Predicting rent: regression" in out
    assert "Scores on 30 rows left out (at random), after learning from 120" in out
    for name in ("Mercer GPRegressor", "mean of the target", "ridge regression", "gradient-boosted trees"):
        assert name in out
    for heading in ("RMSE", "R²", "MAE", "NLL", "90% coverage"):
        assert heading in out
    assert "kernel: gaussian" in out
    assert re.search(r"size +\d\d\.\d% +█+", out)
    assert re.search(r"\d\d\.\d%: \+0\.\d\d size", out)
    assert out.endswith("The model was fitted on all rows and saved to model.mercer\n")
    assert result.stderr == ""
    workflow = mercer.load("model.mercer")
    assert f"{workflow.scores_[0]['r2']:.3f}" in out
    assert number(workflow.settings_["bandwidth"]) in out
    verdict = verdict_of(workflow)
    said = " ".join(out.split("\n\n")[0].split())
    assert said == f"{verdict.good} {verdict.against} {verdict.trust}"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_the_width(folder, width):
    out = done(*NUMBERS, width=width).stdout
    sentences = ("Read ", "Model, ")  # not broken, so that paths can be copied
    assert max(len(line) for line in out.splitlines() if not line.startswith(sentences)) <= width
    assert "…" not in out


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".xlsx"])
def test_every_format_goes_through(folder, ending):
    from mercer.app.files.tables import read_table, write_table

    write_table(read_table("flats.csv"), f"flats{ending}")
    write_table(read_table("new.csv"), f"new{ending}")
    done("fit", f"flats{ending}", *CLASSES[2:])
    result = done("predict", "model.mercer", f"new{ending}", "--out", f"answer{ending}")
    answer = read_table(f"answer{ending}")
    assert list(answer) == ["prediction", "probability of no", "probability of yes"]
    assert len(answer) == 20
    assert np.mean(answer["prediction"] == flats(20, seed=1)["dear"]) > 0.7
    assert "Predicted 20 rows" in result.stdout
    assert f"Written to answer{ending}" in result.stdout


def test_predictions_are_those_of_the_model(folder):
    done(*NUMBERS)
    done("predict", "model.mercer", "new.csv", "--out", "answer.csv", "--level", "0.5")
    expected = mercer.load("model.mercer").predict_frame(pd.read_csv("new.csv"), level=0.5)
    pd.testing.assert_frame_equal(pd.read_csv("answer.csv"), expected)
    done("predict", "model.mercer", "new.csv", "--out", "answer.csv")
    wider = pd.read_csv("answer.csv")
    assert np.all(wider["upper"] - wider["lower"] > expected["upper"] - expected["lower"])


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (lambda rent: np.where(rent > 700, "dear", "cheap"), ["cheap", "dear"]),
        (lambda rent: rent > 700, [False, True]),
        (lambda rent: np.digitize(rent, [500, 800]), [0, 1, 2]),
    ],
)
def test_strings_booleans_and_whole_numbers_are_classes(folder, column, classes):
    frame = flats().drop(columns=["dear", "id"])
    frame.assign(kind=column(frame.pop("rent"))).to_csv("flats.csv", index=False)
    out = done("fit", "flats.csv", "--target", "kind", "--out", "model.mercer", "--model", "rfm").stdout
    assert "Predicting kind: classification" in out
    assert "Mercer RFMClassifier" in out
    assert "balanced accuracy" in out
    done("predict", "model.mercer", "new.csv", "--out", "answer.csv")
    answer = pd.read_csv("answer.csv")
    assert set(answer["prediction"]) == set(classes)
    assert list(answer)[1:] == [f"probability of {label}" for label in classes]


def test_a_task_can_be_asked_for(folder):
    out = done(*FIT, "--target", "rooms", "--task", "regression", "--model", "rfm", "--test-size", "0.5").stdout
    assert "Predicting rooms: regression" in out
    # Ten flats have no rooms in the table.
    assert "Scores on 68 rows left out (at random), after learning from 68" in out
    assert "NLL" in out


def test_a_time_limit_is_told_to_the_model(folder):
    done(*NUMBERS, "--model", "rfm", "--time-limit", "1e6", "--test-size", "0")
    workflow = mercer.load("model.mercer")
    assert workflow.time_limit == 1e6
    assert workflow.model_.estimator_.time_limit == pytest.approx(0.9e6, rel=1e-3)
    done(*NUMBERS, "--model", "rfm", "--time-limit", "0", "--test-size", "0")
    assert mercer.load("model.mercer").time_limit is None
    assert "Invalid value for '--time-limit'" in failed(*NUMBERS, "--time-limit", "-1", code=2).stderr


def test_without_held_out_rows(folder):
    out = done(*NUMBERS, "--test-size", "0").stdout
    assert out.startswith("How well rent is predicted is not known: no rows were left out to score on.")
    assert "RMSE" not in out
    assert "The model was fitted on all rows" in out


def test_seeds_decide(folder):
    first, again, other = (
        json.loads(done(*CLASSES, "--json", "--seed", seed).stdout)["scores"] for seed in ("1", "1", "2")
    )
    assert first == again
    assert first != other


# ---- JSON ----------------------------------------------------------------------------------------------------


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def test_json_is_one_document(folder):
    for model in ("gp", "rfm"):
        result = done(*NUMBERS, "--model", model, "--json")
        document = json.loads(result.stdout, parse_constant=no_constant)
        assert document["task"] == "regression"
        assert (document["rows"], document["n_train"], document["n_test"]) == (150, 120, 30)
        assert document["inputs"]["city"] == "category"
        assert len(document["scores"]) == 4
        assert document["scores"][3]["nll"] is None
        assert document["settings"]["kernel"] == "gaussian"
        assert next(iter(document["importances"])) == "size"
        assert document["combinations"][0]["terms"][0][0] == "size"
        assert document["out"] == "model.mercer"
    result = done("predict", "model.mercer", "new.csv", "--out", "answer.csv", "--json")
    assert json.loads(result.stdout) == {
        "model": "model.mercer",
        "data": "new.csv",
        "rows": 20,
        "columns": ["prediction", "lower", "upper"],
        "unreadable": {},
        "unseen": {},
        "out": "answer.csv",
    }


def test_errors_are_json_too(folder):
    result = failed("fit", "flats.csv", "--target", "rend", "--out", "model.mercer", "--json")
    assert "nearest: 'rent'" in json.loads(result.stdout)["error"]
    assert result.stderr.startswith("error: the table has no target column 'rend'")
    assert len(result.stderr.splitlines()) == 1


# ---- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("flats.csv", "--target", "Rent", "--out", "m"), r"no target column 'Rent' \(nearest: 'rent'"),
        (
            ("flats.csv", "--target", "rent", "--out", "m", "--ignore", "idd"),
            r"no column to ignore 'idd' \(nearest: 'id'",
        ),
        (("flat.csv", "--target", "rent", "--out", "m"), r"no file 'flat.csv' \(nearest: 'flats.csv'"),
        ((".", "--target", "rent", "--out", "m"), "Folders of images go to `mercer embed` and `mercer cluster`"),
        (("wrong.parquet", "--target", "rent", "--out", "m"), "'wrong.parquet' cannot be read as Parquet"),
        (("flats.csv", "--target", "rent", "--out", "nowhere/m"), "create the folder"),
        (("flats.csv", "--target", "rent", "--out", "."), "is a folder: give the name of a file in it"),
        (("flats.csv", "--target", "rent", "--out", "flats.csv"), "is a file that is read"),
        (("flats.csv", "--target", "rent", "--out", "m.csv"), "a model needs another, such as"),
        (("flats.csv", "--target", "rent", "--out", "m", "--model", "discriminant"), "The task is regression"),
        (("flats.csv", "--target", "id", "--out", "m"), "'id' has 150 different values in 150 rows"),
    ],
)
def test_one_line_says_what_is_wrong(folder, args, message):
    (folder / "wrong.parquet").write_text("a,b\n1,2\n")
    before = sorted(path.name for path in folder.iterdir())
    result = failed("fit", *args)
    assert re.fullmatch(rf"error: .*{message}.*\n", result.stderr), result.stderr
    assert result.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before


def test_outputs_are_checked_before_anything_is_computed(folder, monkeypatch):
    done(*CLASSES)
    for module in ("mercer.app.cli.fit", "mercer.app.cli.predict"):
        monkeypatch.setattr(f"{module}.read_described", lambda *_, **__: pytest.fail("the data were read"))
    assert "create the folder" in failed(*CLASSES[:2], "--target", "dear", "--out", "nowhere/m").stderr
    assert "no ending" in failed("predict", "model.mercer", "new.csv", "--out", "answer").stderr
    assert "is a file that is read" in failed("predict", "model.mercer", "new.csv", "--out", "new.csv").stderr
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK or os.path.isfile(path))
    assert "you may not write into the folder" in failed(*CLASSES).stderr


def test_models_that_are_none(folder):
    (folder / "model.mercer").write_text("not a model")
    assert "model.mercer" in failed("predict", "model.mercer", "new.csv", "--out", "answer.csv").stderr
    assert "nowhere" in failed("predict", "nowhere.mercer", "new.csv", "--out", "answer.csv").stderr
    mercer.save(mercer.Mahalanobis(), "metric.mercer")
    message = failed("predict", "metric.mercer", "new.csv", "--out", "answer.csv").stderr
    assert "'metric.mercer' holds a Mahalanobis" in message
    assert "`mercer fit`, `embed` or `cluster`" in message
    assert not (folder / "answer.csv").exists()


def test_new_rows_that_lack_a_column(folder):
    done(*CLASSES)
    pd.read_csv("new.csv").rename(columns={"size": "Size"}).to_csv("new.csv", index=False)
    message = failed("predict", "model.mercer", "new.csv", "--out", "answer.csv").stderr
    assert "no column 'size' (nearest: 'Size')" in message
    assert not (folder / "answer.csv").exists()


class Mirror:
    """A workflow of another kind: it answers with the shape of the images that it is given, and has no intervals."""

    reads, image_shape_ = "images", (4, 6)

    def predict_frame(self, data):
        return pd.DataFrame({"name": data.names, "height": data.X.shape[1], "width": data.X.shape[2]})


def test_other_workflows_say_what_they_read(folder, monkeypatch):
    from PIL import Image

    (folder / "pictures").mkdir()
    for name, grey in (("a.png", 10), ("b.png", 200)):
        Image.new("L", (12, 8), grey).save(folder / "pictures" / name)
    monkeypatch.setattr("mercer.app.cli.predict.load", lambda path: Mirror())
    done("predict", "model.mercer", "pictures", "--out", "answer.csv")
    answer = pd.read_csv("answer.csv")
    assert answer.to_dict("list") == {"name": ["a.png", "b.png"], "height": [4, 4], "width": [6, 6]}


def test_a_model_of_tables_reads_no_folder(folder):
    done(*CLASSES)
    (folder / "pictures").mkdir()
    assert "where a table was expected" in failed("predict", "model.mercer", "pictures", "--out", "a.csv").stderr


def test_wrong_options_are_misuse(folder):
    failed("fit", "flats.csv", "--out", "m", code=2)
    failed("fit", "flats.csv", "--target", "rent", "--out", "m", "--test-size", "0.95", code=2)
    failed("fit", "flats.csv", "--target", "rent", "--out", "m", "--task", "ranking", code=2)
    failed("predict", "model.mercer", "new.csv", "--out", "a.csv", "--level", "1", code=2)


def test_debug_shows_the_traceback(folder):
    result = mercer_command("fit", "flats.csv", "--target", "rend", "--out", "model.mercer", "--debug")
    assert isinstance(result.exception, ValueError)
    assert result.exit_code == 1


def test_defects_are_called_so(folder, monkeypatch):
    def break_down(self, frame, target_name, watch, origin):
        raise KeyError("a slip")

    monkeypatch.setattr(table_prediction.TablePrediction, "fit", break_down)
    assert "a defect in Mercer itself, KeyError: 'a slip'" in failed(*CLASSES, code=70).stderr


@pytest.mark.parametrize("earlier", [True, False])
def test_stopped_by_ctrl_c_it_leaves_all_as_it_was(folder, monkeypatch, earlier):
    if earlier:
        (folder / "model.mercer").write_text("earlier")
    before = sorted(path.name for path in folder.iterdir())

    def stop(self, frame, target_name, watch, origin):
        raise KeyboardInterrupt

    monkeypatch.setattr(table_prediction.TablePrediction, "fit", stop)
    failed(*CLASSES, code=130)
    assert sorted(path.name for path in folder.iterdir()) == before
    if earlier:
        assert (folder / "model.mercer").read_text() == "earlier"


def test_stopped_by_ctrl_c_later_it_keeps_the_best_so_far(folder, monkeypatch):
    fits = []

    def stop_second(name, task, n_rows, seed, options, time_limit):
        fits.append(time_limit)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return make(name, task, n_rows, seed, options, time_limit)

    monkeypatch.setattr(table_prediction, "make", stop_second)
    result = failed(*CLASSES, code=130)
    assert "note: stopped by Ctrl-C: the best model so far is kept, which has learned from 120 of 150 rows." in (
        result.stderr
    )
    last = "Ctrl-C ended the fit. The best model so far, which has learned from 120 rows, was saved to model.mercer"
    assert last in result.stdout
    assert mercer.load("model.mercer").n_learned_ == 120


def test_the_time_limit_is_of_all_fits_together(folder, monkeypatch):
    limits = []

    def keep(name, task, n_rows, seed, options, time_limit):
        limits.append(time_limit)
        return make(name, task, n_rows, seed, SIMPLE, time_limit)

    monkeypatch.setattr(table_prediction, "make", keep)
    done(*NUMBERS, "--time-limit", "50")
    assert len(limits) == 2
    assert 0 < limits[0] <= 0.4 * 50
    assert 0 < limits[1] <= 0.9 * 50


def test_phases_are_shown_on_a_terminal(folder, monkeypatch):
    """What is told of phases becomes a line with what is left."""
    from mercer.app.cli.output import duration, phases

    console = err_console()
    monkeypatch.setattr(type(console), "is_terminal", True)
    with phases() as tell:
        tell("learning from 5 rows", 100.0)
        tell("scoring", None)
    texts = [duration(seconds) for seconds in (0.2, 8.4, 44.0, 200.0, 9000.0)]
    assert texts == ["1 s", "8 s", "40 s", "3 min", "2 h"]


# ---- notes ---------------------------------------------------------------------------------------------------


def test_notes_are_lines_on_standard_error(folder):
    frame = flats()
    frame.loc[:9, "dear"] = None
    frame["empty"] = np.nan
    frame.to_csv("flats.csv")  # with the index
    result = done(*CLASSES, "--json")
    assert json.loads(result.stdout)["dropped_rows"] == 10
    assert json.loads(result.stdout)["inputs"]["empty"] == "missing"
    assert sorted(result.stderr.splitlines()) == [
        "note: 10 of 150 rows have no value in 'dear': they are left out.",
        "note: X has no value in 'empty': dropped.",
        "note: the first column of 'flats.csv' has no name and counts the rows, so it is left out.",
    ]
    done("predict", "model.mercer", "new.csv", "--out", "answer.csv")  # which has no column 'empty'


def test_each_note_is_shown_once_and_other_warnings_are_not(capsys):
    with notes():
        for _ in range(2):
            warnings.warn("some\n   thing", DataWarning, stacklevel=1)
        warnings.warn("other", ConvergenceWarning, stacklevel=1)
        warnings.warn("of no use to people", UserWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "note: some thing\nnote: other\n")
    with pytest.warns(DataWarning):
        warnings.warn("as before", DataWarning, stacklevel=1)


# ---- the console ---------------------------------------------------------------------------------------------


def test_plain_values_for_json(capsys):
    print_json(
        {"a": np.float64("nan"), 1: np.arange(2), "b": (np.True_, None, float("inf"), "x"), "c": np.array(["ä"])}
    )
    assert json.loads(capsys.readouterr().out) == {
        "a": None,
        "1": [0, 1],
        "b": [True, None, None, "x"],
        "c": ["ä"],
    }
    assert plain({"p": {"q": [np.int8(3)]}}) == {"p": {"q": [3]}}


def test_names_are_not_markup(capsys):
    console = out_console()
    console.print("[bold]weight[/bold] :smile: [kg]")
    assert capsys.readouterr().out == "[bold]weight[/bold] :smile: [kg]\n"


def test_numbers_for_people():
    values = [0.00012346, 3.14159, -12345.6, 1.5e15, None, float("nan"), 0.0]
    assert [number(v) for v in values] == ["0.000123", "3.14", "-12,300", "1.5e+15", "-", "-", "0"]


def test_bars_are_as_long_as_their_share(capsys):
    assert [len(bar(share, out_console())) for share in (0.0, 0.5, 1.0)] == [0, 20, 40]


def test_where_there_is_no_terminal_there_is_no_progress(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    with waiting("fitting"), progress() as steps:
        steps.advance(steps.add_task("steps", total=2))
    assert capsys.readouterr() == ("", "")
    assert out_console().width == err_console().width == 160


# ---- in a process of its own ---------------------------------------------------------------------------------


def shell(folder, *args, **env):
    command = [sys.executable, "-m", "mercer", *args]
    options = {"cwd": folder, "capture_output": True, "env": os.environ | {"COLUMNS": "100"} | env}
    return subprocess.run(command, **options)


def test_fit_in_a_shell(folder):
    """Also where the terminal knows no letter beyond ASCII."""
    result = shell(folder, *CLASSES, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0, result.stderr
    assert b"KernelDiscriminant" in result.stdout
    assert result.stderr == b""
    done("predict", "model.mercer", "new.csv", "--out", "answer.parquet")
    assert len(pd.read_parquet(folder / "answer.parquet")) == 20


def test_errors_in_a_shell(folder):
    result = shell(folder, "fit", "flats.csv", "--target", "rend", "--out", "model.mercer")
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    assert b"nearest: 'rent'" in result.stderr


def test_help_is_light():
    """`mercer fit --help` brings none of the heavy libraries."""
    code = (
        "import sys; from typer.testing import CliRunner; from mercer.app.cli.app import app;"
        "assert CliRunner().invoke(app, ['fit', '--help']).exit_code == 0;"
        "print([m for m in ('torch', 'sklearn', 'pandas', 'numpy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
