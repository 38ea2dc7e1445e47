"""Two models on the same rows: when the rows that both have left out are told from other rows."""

import numpy as np
import pandas as pd
import pytest

from mercer.app.projects import TablePrediction
from mercer.app.projects.two_models import compare_models
from mercer.exceptions import DataWarning
from tests.app.projects.test_table_prediction import CLASSES, flats

BOTH = ("one", "other")


@pytest.fixture(scope="module")
def models():
    """Two models of the same classes, which have left out the same rows."""
    frame = flats()
    return [
        TablePrediction("discriminant", **(CLASSES | {"ignore": names})).fit(frame, "dear")
        for names in (("id", "rent"), ("id", "rent", "city"))
    ]


def test_classes_of_the_left_out_rows_are_found_in_the_table_of_the_fit(models):
    found = compare_models(*models, flats(), BOTH, "auto", 0)
    assert found.are_left_out
    assert found.rows == len(models[0].held_out_["rows"])


def test_only_the_left_out_rows_need_their_classes(models):
    frame, rows = flats(), models[0].held_out_["rows"]
    others = ~np.isin(np.arange(len(frame)), rows)
    frame.loc[others, "dear"] = frame.loc[others, "id"]  # too many values for classes, if all rows were judged
    found = compare_models(*models, frame, BOTH, "auto", 0)
    assert found.are_left_out
    assert found.scores[0]["accuracy"] == pytest.approx(models[0].scores_[0]["accuracy"])


def test_rows_with_other_classes_are_not_those_of_the_fit(models):
    frame = flats()
    frame["dear"] = frame["dear"].to_numpy()[::-1]
    assert not compare_models(*models, frame, BOTH, "auto", 0).are_left_out


def test_whole_numbers_stay_classes_beside_rows_without_a_target():
    frame = flats()
    frame["dear"] = (frame["dear"] == "yes").astype(np.int64)
    frame.loc[[3, 50], "dear"] = np.nan  # which turns the column into one of floats
    with pytest.warns(DataWarning, match="2 of 150 rows"):
        model = TablePrediction("discriminant", task="classification", **CLASSES).fit(frame, "dear")
    assert pd.api.types.is_float_dtype(frame["dear"])
    found = compare_models(model, model, frame, BOTH, "auto", 0)
    assert found.are_left_out
    assert found.rows == len(model.held_out_["rows"])
