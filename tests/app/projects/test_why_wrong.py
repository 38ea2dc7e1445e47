"""Why rows were predicted wrong, and what is lost without a column, against what they say they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error

from mercer.app.projects import TablePrediction
from mercer.app.projects.column_needs import MOST_COLUMNS, column_needs
from mercer.app.projects.why_wrong import badness_of
from tests.app.projects.test_table_prediction import CLASSES, NUMBERS, SIMPLE, flats


@pytest.mark.parametrize(("options", "target"), [(NUMBERS, "rent"), (CLASSES, "dear")])
def test_reasons_are_of_the_worst_rows_and_true(options, target):
    """The workflow is fitted without a last fit, so that the model that was scored is at hand."""
    frame = flats(200)
    workflow = TablePrediction("rfm", options=SIMPLE, **options)
    models = []
    fit = TablePrediction._fitted

    def keep(self, *args, **more):
        models.append(fit(self, *args, **more))
        return models[-1]

    TablePrediction._fitted = keep
    try:
        workflow.fit(frame, target)
    finally:
        TablePrediction._fitted = fit
    model, kept = models[0], workflow.held_out_
    badness = badness_of(kept["true"], kept["predicted"], kept.get("probabilities"), kept.get("classes"))
    worst = kept["rows"][np.argsort(-badness)[:3]]
    assert [found["row"] for found in workflow.wrong_] == worst.tolist()
    row = frame.iloc[[worst[0]]][workflow.columns_]
    told = workflow.wrong_[0]["columns"][0]
    assert told["column"] in ("size", "city")
    other = row.assign(**{told["column"]: float(told["typical"]) if told["column"] == "size" else told["typical"]})
    if target == "rent":
        moved = model.predict(row)[0] - model.predict(other)[0]
    else:
        place = list(model.classes_).index(model.predict(row)[0])
        moved = model.predict_proba(row)[0, place] - model.predict_proba(other)[0, place]
    assert told["moves_by"] == pytest.approx(moved, abs=2e-3 * abs(moved) + 1e-6)  # typical values are told in digits
    train = np.setdiff1d(np.arange(200), kept["rows"])
    for entry in workflow.wrong_[0]["like"]:
        assert entry["row"] in train
        own = frame[target][entry["row"]]
        assert entry["target"] == (own if target == "dear" else f"{own:.4g}")


class Sum:
    """A model of a table that adds up its columns, or draws the probability of a class from them."""

    classes_ = np.array(["a", "b"])

    def __init__(self, names):
        self.feature_names_in_ = names
        self.estimator_ = None
        self.encoder_ = type("Encoder", (), {"kinds_": dict.fromkeys(names, "number")})()
        self.fitted_ = True

    def fit(self):
        return self

    def predict(self, X):
        return np.asarray(X).sum(axis=1)


def test_what_is_lost_is_in_the_units_of_the_score():
    """Without a column of variance 4 that is added up, the mean square error grows by twice that, from 1."""
    random = np.random.default_rng(0)
    names = [f"c{i}" for i in range(MOST_COLUMNS + 3)]
    frame = pd.DataFrame(random.normal(size=(1000, len(names))), columns=names) * 1e-9
    frame["c1"] = 2.0 * random.normal(size=1000)
    model = Sum(names)
    del Sum.classes_
    y = model.predict(frame) + random.normal(size=1000)
    found = column_needs("regression", model, frame, y, np.random.RandomState(0))
    assert found[0]["column"] == "c1"
    assert found[0]["grows_by"] == pytest.approx(np.sqrt(9.0) - 1.0, rel=0.15)
    assert found[0]["low"] < found[0]["grows_by"] < found[0]["high"]
    assert len(found) == MOST_COLUMNS + 1
    assert "3 other columns" in [entry["column"] for entry in found]
    assert column_needs("regression", model, frame[:5], y[:5], np.random.RandomState(0)) == []
    assert root_mean_squared_error(y, model.predict(frame)) == pytest.approx(1.0, rel=0.1)


def test_how_wrong_classes_are():
    P = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    found = badness_of(np.array(["a", "a", "c"]), np.array(["a", "b", "a"]), P, np.array(["a", "b"]))
    np.testing.assert_allclose(found, [0.2, 0.7, 1.0])
    assert log_loss(["a", "a"], P[:2], labels=["a", "b"]) == pytest.approx(-np.log(1 - found[:2]).mean())
