"""`mercer compare`, `leaderboard` and `predict` to standard output, as a person runs them."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.app.projects import leaderboard as leaderboard_module
from tests.app.cli.test_cli_tables import CLASSES, NUMBERS, done, failed, folder, quick  # noqa: F401
from tests.app.projects.test_table_prediction import flats


def test_models_are_compared_on_the_rows_that_both_have_left_out(folder):  # noqa: F811
    done(*NUMBERS)
    ignored = [part for name in ("id", "dear", "city") for part in ("--ignore", name)]
    done("fit", "flats.csv", "--target", "rent", "--out", "worse.mercer", *ignored)
    out = done("compare", "model.mercer", "worse.mercer", "flats.csv").stdout
    assert out.startswith("model.mercer is better than worse.mercer by ")
    assert "On 30 rows that both fits have left out" in out
    found = json.loads(done("compare", "worse.mercer", "model.mercer", "flats.csv", "--json").stdout)
    first, second = (mercer.load(name).scores_[0]["rmse"] for name in ("worse.mercer", "model.mercer"))
    assert [entry["rmse"] for entry in found["scores"]] == pytest.approx([first, second])
    assert found["difference"]["better_by"] == pytest.approx(second - first)
    assert found["difference"]["high"] < 0
    assert found["are_left_out"]


def test_models_with_other_splits_are_compared_on_the_rows_that_both_have_left_out(folder):  # noqa: F811
    done(*NUMBERS, "--test-size", "0.5")
    other = ["other.mercer" if part == "model.mercer" else part for part in NUMBERS]
    done(*other, "--seed", "1", "--test-size", "0.5")
    first, second = (mercer.load(name).held_out_ for name in ("model.mercer", "other.mercer"))
    both = sorted(set(first["rows"]) & set(second["rows"]))
    found = json.loads(done("compare", "model.mercer", "other.mercer", "flats.csv", "--json").stdout)
    assert found["are_left_out"]
    assert 10 <= found["rows"] == len(both) < len(first["rows"])
    for kept, entry in zip((first, second), found["scores"], strict=True):
        place = {row: i for i, row in enumerate(kept["rows"])}
        errors = [kept["true"][place[row]] - kept["predicted"][place[row]] for row in both]
        assert entry["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))


def test_models_are_compared_on_new_rows_too(folder):  # noqa: F811
    done(*CLASSES)
    flats(40, seed=3).to_csv("later.csv", index=False)
    found = json.loads(done("compare", "model.mercer", "model.mercer", "later.csv", "--json", "--metric", "auc").stdout)
    assert (found["rows"], found["are_left_out"], found["metric"]) == (40, False, "auc")
    assert found["difference"]["better_by"] == 0
    answer = mercer.load("model.mercer").predict_frame(flats(40, seed=3))
    right = np.mean(answer["prediction"] == flats(40, seed=3)["dear"])
    assert found["scores"][0]["accuracy"] == pytest.approx(right)
    told = done("compare", "model.mercer", "model.mercer", "later.csv").stdout
    assert "cannot be told" in told
    assert "To compare fairly" in told
    done(*NUMBERS[:3], "other.mercer", *NUMBERS[4:])
    assert "models of the same target and task" in failed("compare", "model.mercer", "other.mercer", "later.csv").stderr
    assert "no target column 'dear'" in failed("compare", "model.mercer", "model.mercer", "new.csv").stderr.lower()


def test_a_leaderboard_has_ours_and_simple_models_on_one_split(folder, monkeypatch):  # noqa: F811
    class Peer:
        def fit(self, X, y):
            self.mean = np.mean(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.mean)

    class Broken(Peer):
        def fit(self, X, y):
            raise ValueError("it\ncannot")

    monkeypatch.setattr(leaderboard_module, "peers", lambda task, seed: iter([("Peer", Peer()), ("Broken", Broken())]))
    ours = {"rfm": leaderboard_module.ESTIMATORS["regression"]["rfm"]}
    monkeypatch.setattr(leaderboard_module, "ESTIMATORS", {"regression": ours})
    args = ("leaderboard", "flats.csv", "--target", "rent", "--ignore", "id", "--ignore", "dear", "--time-limit", "10")
    found = json.loads(done(*args, "--json").stdout)
    names = [entry["name"] for entry in found["models"]]
    assert set(names) == {
        "Mercer RFMRegressor",
        "Peer",
        "Broken",
        "mean of the target",
        "ridge regression",
        "gradient-boosted trees",
    }
    assert names[-1] == "Broken"
    scores = [entry["rmse"] for entry in found["models"][:-1]]
    assert scores == sorted(scores)
    by_name = {entry["name"]: entry for entry in found["models"]}
    assert by_name["Peer"]["rmse"] == pytest.approx(by_name["mean of the target"]["rmse"])
    assert all(entry["seconds"] >= 0 for entry in found["models"][:-1])
    out = done(*args).stdout
    assert "On 30 rows left out, learned from 120; ranked by RMSE" in out
    assert "Broken could not be fitted: it cannot" in out


def test_classes_have_a_leaderboard_with_the_peers_that_are_there(folder):  # noqa: F811
    from sklearn.ensemble import RandomForestClassifier

    from mercer.app.projects.leaderboard import peer_answers, peers

    y = np.array(["no", "yes"] * 20)
    X = np.random.default_rng(0).normal(size=(40, 2)) + (y == "yes")[:, None]
    answers = peer_answers("classification", RandomForestClassifier(random_state=0), X, y, X)
    assert set(answers.predicted) == {"no", "yes"}
    assert np.mean(answers.predicted == y) > 0.95
    assert {name for name, _ in peers("regression", 0)} <= {"CatBoost", "LightGBM", "XGBoost"}


def test_predictions_go_to_standard_output_without_a_file(folder):  # noqa: F811
    done(*NUMBERS)
    result = done("predict", "model.mercer", "new.csv")
    answer = pd.read_csv(io.StringIO(result.stdout))
    pd.testing.assert_frame_equal(answer, mercer.load("model.mercer").predict_frame(pd.read_csv("new.csv")))
    found = json.loads(done("predict", "model.mercer", "new.csv", "--json").stdout)
    assert found["predictions"]["prediction"] == pytest.approx(answer["prediction"].tolist())


@pytest.mark.parametrize(("fit", "target"), [(NUMBERS, "rent"), (CLASSES, "dear")])
def test_reasons_for_a_row_on_demand(folder, fit, target):  # noqa: F811
    done(*fit)
    found = json.loads(done("predict", "model.mercer", "new.csv", "--why", "3", "--json").stdout)
    answer = mercer.load("model.mercer").predict_frame(pd.read_csv("new.csv")).iloc[3]
    assert found["answer"]["prediction"] == (
        answer["prediction"] if target == "dear" else pytest.approx(answer["prediction"])
    )
    assert "size" in {entry["column"] for entry in found["columns"]}
    assert all(0 <= entry["row"] < 150 for entry in found["like"])
    # What is typical is known from the fit: of one row alone the same is told.
    flats(20, seed=1).drop(columns=["rent", "dear"]).iloc[[3]].to_csv("one.csv", index=False)
    alone = json.loads(done("predict", "model.mercer", "one.csv", "--why", "0", "--json").stdout)
    assert [entry["column"] for entry in alone["columns"]] == [entry["column"] for entry in found["columns"]]
    assert [e["moves_by"] for e in alone["columns"]] == pytest.approx([e["moves_by"] for e in found["columns"]])
    out = done("predict", "model.mercer", "new.csv", "--why", "3").stdout
    assert out.startswith(f"Row 3: {target} ")
    assert "moves the " in out
    assert "why=99" in failed("predict", "model.mercer", "new.csv", "--why", "99").stderr


def test_repeats_and_a_learning_curve(folder):  # noqa: F811
    options = ("--repeats", "3", "--learning-curve", "--metric", "mae")
    found = json.loads(done(*NUMBERS, *options, "--json").stdout)
    assert len(found["repeats"]) == 2
    assert found["metric"] == found["compared_with"]["score"] == "mae"
    rows = [entry["rows"] for entry in found["learning_curve"]]
    assert rows == [30, 60, 120]
    assert found["learning_curve"][-1]["score"] == pytest.approx(found["scores"][0]["mae"])
    out = done(*NUMBERS, *options).stdout
    assert "Over 3 splits its MAE is " in out
    assert "from 60 to 120 rows" in out
    assert "metric=" in failed(*NUMBERS, "--metric", "auc").stderr


def test_a_model_has_a_name_unless_told_and_is_not_written_over(folder):  # noqa: F811
    args = ("fit", "flats.csv", "--target", "dear", "--ignore", "id", "--ignore", "rent", "--model", "discriminant")
    assert done(*args).stdout.endswith("saved to flats-dear.mercer\n")
    before = (folder / "flats-dear.mercer").read_bytes()
    assert "give another name with --out, or replace it with --force" in failed(*args).stderr
    done(*args, "--force", "--seed", "1")
    assert (folder / "flats-dear.mercer").read_bytes() != before
    flats().rename(columns={"dear": "a/b ../c"}).to_csv("my.table.csv", index=False)
    args = ("fit", "my.table.csv", "--target", "a/b ../c", *args[4:])
    assert done(*args).stdout.endswith("saved to my-a_b____c.mercer\n")
