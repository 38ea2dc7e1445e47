"""Predicting a column of a table: the task, the split, the scores beside baselines, and the predictions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import mercer
from mercer.app.projects import TablePrediction, table_prediction
from mercer.app.projects.table_description import describe_combinations
from mercer.app.projects.table_estimators import ESTIMATORS, LANDMARKS, MOST_EXACT_ROWS, allowed_models, compare, make
from mercer.app.projects.table_scores import Spread, classification_scores, regression_scores
from mercer.app.projects.table_split import split
from mercer.app.projects.table_target import as_classes, as_numbers, find_task
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError
from tests.examples_of import QUICK

# One kernel in place of the search: quick, and enough where the result is not the point.
SIMPLE = {"kernel": "gaussian", "metric": "full", "warp": "none", "n_iter": 1, "iterate": "last"}


def flats(n=150, seed=0):
    """Rents that follow from size and city, and whether a flat is dear: numbers, classes and dates, with holes."""
    random = np.random.default_rng(seed)
    size, city = random.gamma(9.0, 8.0, n), random.choice(["Oslo", "Rome", "Paris"], n)
    days = random.integers(0, 1000, n)
    rent = 10.0 * size + 200.0 * (city == "Oslo") + 20.0 * random.normal(size=n)
    frame = pd.DataFrame(
        {
            "id": [f"flat {i}" for i in range(n)],
            "size": size,
            "city": city,
            "built": (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d"),
            "rooms": random.integers(1, 6, n),
            "always": 1,
            "rent": rent,
            "dear": np.where(rent > np.median(rent), "yes", "no"),
        }
    )
    frame.loc[::11, "rooms"] = np.nan
    frame.loc[5::13, "city"] = None
    return frame


NUMBERS = {"ignore": ("id", "dear"), "random_state": 0}
CLASSES = {"ignore": ("id", "rent"), "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    """One workflow a model, on the same table."""
    frame = flats()
    return {
        "gp": TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent"),
        "rfm": TablePrediction("rfm", options=SIMPLE, **NUMBERS).fit(frame, "rent"),
        "classes": TablePrediction(options=SIMPLE, **CLASSES).fit(frame, "dear"),
        "discriminant": TablePrediction("discriminant", **CLASSES).fit(frame, "dear"),
        "process of classes": TablePrediction("gp", options=SIMPLE, **CLASSES).fit(frame, "dear"),
    }


EVERY = ("gp", "rfm", "classes", "discriminant", "process of classes")


# ---- the task ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (np.linspace(0, 1, 200), "regression"),
        (np.arange(200), "regression"),
        (np.arange(200) % 10, "classification"),
        (np.arange(200) % 11, "regression"),
        (np.arange(99) % 10, "regression"),
        (np.arange(100) % 10, "classification"),
        (np.arange(200) % 2 / 2, "regression"),
        ((np.arange(200) % 3).astype(float), "classification"),
        (pd.array(np.arange(200) % 3, dtype="Int64"), "classification"),
        (pd.array(np.arange(200), dtype="Float64"), "regression"),
        (np.arange(200) % 2 == 0, "classification"),
        (pd.array(np.arange(200) % 2 == 0, dtype="boolean"), "classification"),
        (["a", "b"] * 100, "classification"),
        (pd.Categorical(np.arange(200) / 2), "classification"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_tell_the_task(values, task):
    assert find_task(pd.Series(values, name="t")) == task


def test_dates_are_not_predicted():
    dates = pd.Series(pd.date_range("2020-01-01", periods=30), name="when")
    for use in (find_task, as_numbers):
        with pytest.raises(DataFileError, match="'when' holds dates"):
            use(dates)


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([True, False] * 3, [False, True]),
        (pd.Series([True, False] * 3, dtype=object), [False, True]),
        (pd.array([True, False] * 3, dtype="boolean"), [False, True]),
        ([1.0, 2.0] * 3, [1, 2]),
        (pd.array([1, 2] * 3, dtype="Int64"), [1, 2]),
        ([0.5, 1.5] * 3, ["0.5", "1.5"]),
        (["b", "a"] * 3, ["a", "b"]),
        (pd.Categorical(["b", "a"] * 3), ["a", "b"]),
        (pd.Series([1, "a"] * 3, dtype=object), ["1", "a"]),
    ],
)
def test_classes_are_booleans_whole_numbers_or_strings(values, classes):
    found = np.unique(as_classes(pd.Series(values))).tolist()
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


def test_targets_of_which_nothing_can_be_learned():
    with pytest.raises(DataFileError, match="'t' has one value only, a: there is nothing to learn"):
        as_classes(pd.Series(["a"] * 9, name="t"))
    assert len(as_classes(pd.Series(list("aabbccdd")))) == 8
    with pytest.raises(DataFileError, match="'t' has 5 different values in 9 rows, such as a: .* too many for classes"):
        as_classes(pd.Series(list("aabbccdde"), name="t"))
    with pytest.raises(DataFileError, match=r"'t' is not a finite number in 2 of 4 rows, such as 'x'"):
        as_numbers(pd.Series(["1", "x", "2.5", "y"], name="t"))
    with pytest.raises(DataFileError, match=r"not a finite number in 1 of 2 rows, such as .*inf"):
        as_numbers(pd.Series([1.0, np.inf], name="t"))
    np.testing.assert_array_equal(as_numbers(pd.Series(["1", "2.5"])), [1.0, 2.5])
    np.testing.assert_array_equal(as_numbers(pd.Series(pd.Categorical([3, 1]))), [3.0, 1.0])
    np.testing.assert_array_equal(as_numbers(pd.Series([True, False])), [1.0, 0.0])


# ---- the split -----------------------------------------------------------------------------------------------


@QUICK
@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=6),
    test_size=st.sampled_from([0.1, 0.2, 0.5]),
    seed=st.integers(0, 99),
)
def test_classes_have_their_share_on_both_sides(counts, test_size, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    n_test = max(1, round(test_size * len(y)))
    free = sum(count for count in counts if count > 1)
    if free - n_test < 1:
        with pytest.raises(ValueError, match="leaves too few to learn from"):
            split(y, "classification", test_size, np.random.RandomState(seed))
        return
    train, test = split(y, "classification", test_size, np.random.RandomState(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    assert len(test) == n_test
    assert np.all(np.diff(train) > 0)
    assert np.all(np.diff(test) > 0)
    assert not any(counts[label] == 1 for label in y[test])
    several = [label for label, count in enumerate(counts) if count > 1]
    if len(several) <= min(n_test, free - n_test):
        for label in several:
            wanted = counts[label] * n_test / free
            assert abs(np.sum(y[test] == label) - wanted) <= 1


@pytest.mark.parametrize(("test_size", "n_test"), [(0.1, 1), (0.8, 8)])
def test_more_classes_than_rows_on_a_side_are_split_at_random(test_size, n_test):
    train, test = split(np.repeat(np.arange(5), 2), "classification", test_size, np.random.RandomState(0))
    assert (len(train), len(test)) == (10 - n_test, n_test)


def test_numbers_are_split_at_random():
    first, again, other = (split(np.arange(50.0), "regression", 0.3, np.random.RandomState(seed)) for seed in (0, 0, 1))
    assert len(first[1]) == 15
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[1], other[1])
    assert not np.array_equal(first[1], np.arange(35, 50))
    with pytest.raises(ValueError, match=r"test_size=0.9 of 2 rows leaves too few"):
        split(np.arange(2.0), "regression", 0.9, np.random.RandomState(0))


# ---- the scores ----------------------------------------------------------------------------------------------


def test_scores_of_numbers():
    y, mean, std = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 0.5])
    scores = regression_scores(y, mean, Spread.gaussian(y, mean, std))
    inside = np.abs(y - mean) <= norm.ppf(0.95) * std
    naive = {
        "rmse": np.sqrt(5 / 3),
        "r2": 1 - 5 / np.sum((y - y.mean()) ** 2),
        "mae": 1.0,
        "nll": -np.mean(norm.logpdf(y, mean, std)),
        "coverage": inside.mean(),
    }
    assert scores == pytest.approx(naive)
    assert scores["coverage"] == pytest.approx(2 / 3)
    ends = np.array([[0.0, 1.0], [2.5, 3.0], [1.0, 9.0]])
    own = regression_scores(y, mean, Spread(np.array([-1.0, -2.0, -6.0]), ends))
    assert own["nll"] == pytest.approx(3.0)
    assert own["coverage"] == pytest.approx(2 / 3)
    assert regression_scores(y, mean) | {"nll": None, "coverage": None} == regression_scores(y, mean)
    assert Spread.gaussian(y, mean, np.zeros(3)) is None
    assert regression_scores(y[:1], mean[:1])["r2"] is None


def test_scores_of_classes():
    y = np.array(["a", "a", "a", "c"], dtype=object)
    P = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    scores = classification_scores(
        y, np.array(["a", "b", "a", "b"], dtype=object), P, np.array(["a", "b"], dtype=object)
    )
    unseen = np.log(np.finfo(float).eps)
    assert scores == pytest.approx(
        {
            "accuracy": 0.5,
            "balanced_accuracy": (2 / 3 + 0) / 2,
            "log_loss": -(np.log(0.5) + np.log(0.25) + np.log(1.0) + unseen) / 4,
        }
    )


@pytest.mark.parametrize("name", EVERY)
def test_scores_are_those_of_the_held_out_rows(fitted, name):
    workflow, frame = fitted[name], flats()
    kept = workflow.held_out_
    assert workflow.n_test_ == len(kept["rows"]) == 30
    assert workflow.n_train_ == 120
    np.testing.assert_array_equal(kept["true"], frame[workflow.target_].to_numpy()[kept["rows"]])
    own, constant, linear, trees = workflow.scores_
    rest = np.delete(frame[workflow.target_].to_numpy(), kept["rows"])
    if workflow.task_ == "regression":
        assert own["rmse"] == pytest.approx(np.sqrt(np.mean((kept["true"] - kept["predicted"]) ** 2)))
        assert constant["rmse"] == pytest.approx(np.sqrt(np.mean((kept["true"] - rest.mean()) ** 2)))
        nll = -np.mean(norm.logpdf(kept["true"].astype(float), rest.mean(), rest.std()))
        assert constant["nll"] == pytest.approx(nll)
        assert own["rmse"] < 0.5 * constant["rmse"]
        assert linear["rmse"] < 0.5 * constant["rmse"]
        assert linear["nll"] < constant["nll"]
        assert trees["nll"] is None
    else:
        assert own["accuracy"] == pytest.approx(np.mean(kept["true"] == kept["predicted"]))
        labels, counts = np.unique(rest.astype(str), return_counts=True)
        shares = dict(zip(labels, counts / counts.sum(), strict=True))
        assert constant["log_loss"] == pytest.approx(-np.mean([np.log(shares[label]) for label in kept["true"]]))
        assert kept["classes"].tolist() == ["no", "yes"]
        right = kept["probabilities"][np.arange(30), (kept["true"] == "yes").astype(int)]
        assert own["log_loss"] == pytest.approx(-np.mean(np.log(right)))
        assert own["accuracy"] > constant["accuracy"]
        assert linear["log_loss"] < constant["log_loss"]
    assert trees != linear


def test_the_fit_that_is_scored_has_not_seen_the_held_out_rows(fitted):
    """Another value in a left-out row changes no prediction for the others."""
    frame = flats()
    held_out = fitted["gp"].held_out_
    frame.loc[held_out["rows"][0], "rent"] += 50.0
    again = TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent")
    np.testing.assert_array_equal(again.held_out_["predicted"], held_out["predicted"])
    np.testing.assert_array_equal(again.held_out_["std"], held_out["std"])
    assert again.held_out_["true"][0] == held_out["true"][0] + 50.0
    assert again.settings_ != fitted["gp"].settings_


def test_the_model_that_is_kept_has_seen_all_rows(fitted):
    for name in EVERY:
        assert fitted[name].settings_["landmarks"] == "150 of 150 rows"


def test_without_a_test_part_there_are_no_scores():
    workflow = TablePrediction("rfm", options=SIMPLE, test_size=0, **NUMBERS).fit(flats(80), "rent")
    assert workflow.scores_ == []
    assert workflow.held_out_ == {}
    assert (workflow.n_train_, workflow.n_test_) == (80, 0)
    assert list(workflow.predict_frame(flats(5))) == ["prediction"]


def test_held_out_rows_that_are_kept_are_drawn_at_random(monkeypatch):
    monkeypatch.setattr("mercer.app.projects.scored_split.MOST_KEPT", 7)
    workflow = TablePrediction("discriminant", **CLASSES).fit(flats(), "dear")
    rows = workflow.held_out_["rows"]
    assert len(rows) == len(workflow.held_out_["probabilities"]) == 7
    assert workflow.n_test_ == 30
    assert rows.max() > 75
    assert np.all(np.diff(rows) > 0)


# ---- predictions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_saved_and_loaded_it_predicts_the_same(fitted, name, tmp_path):
    mercer.save(fitted[name], tmp_path / "model")
    loaded, frame = mercer.load(tmp_path / "model"), flats(40, seed=1)
    pd.testing.assert_frame_equal(loaded.predict_frame(frame), fitted[name].predict_frame(frame))
    assert loaded.scores_ == fitted[name].scores_
    assert loaded.settings_ == fitted[name].settings_
    assert loaded.importances_ == fitted[name].importances_
    assert loaded.combinations_ == fitted[name].combinations_
    assert loaded.reads == "table"


@pytest.mark.parametrize("name", EVERY)
def test_rows_keep_their_order_and_columns_may_come_in_any(fitted, name):
    frame = flats(40, seed=1).set_axis([f"r{i}" for i in range(40)])
    whole = fitted[name].predict_frame(frame)
    assert list(whole.index) == list(frame.index)
    other = frame.drop(columns=["always", "id", "rent", "dear"])[["rooms", "city", "built", "size"]].assign(extra=1)
    pd.testing.assert_frame_equal(fitted[name].predict_frame(other), whole)
    pd.testing.assert_frame_equal(fitted[name].predict_frame(frame.iloc[::-1]), whole.iloc[::-1], rtol=1e-9)
    one = fitted[name].predict_frame(frame.iloc[[3]])
    pd.testing.assert_frame_equal(one, whole.iloc[[3]], rtol=1e-6)


def test_classes_come_with_their_probabilities(fitted):
    for name in ("classes", "discriminant", "process of classes"):
        answer = fitted[name].predict_frame(flats(40, seed=1))
        assert list(answer) == ["prediction", "probability of no", "probability of yes"]
        np.testing.assert_allclose(answer.iloc[:, 1] + answer.iloc[:, 2], 1.0)
        np.testing.assert_array_equal(answer["prediction"] == "yes", answer["probability of yes"] > 0.5)
        assert np.mean(answer["prediction"] == flats(40, seed=1)["dear"]) > 0.7


def test_intervals_of_a_process_are_its_own(fitted):
    frame = flats(40, seed=1)
    workflow = fitted["gp"]
    answer = workflow.predict_frame(frame, level=0.5)
    assert list(answer) == ["prediction", "std", "lower", "upper"]
    own = workflow.model_.predict_interval(frame.reindex(columns=workflow.columns_), 0.5)
    np.testing.assert_array_equal(answer[["lower", "upper"]], own)
    gaussian = norm.ppf(0.75) * answer["std"]
    assert not np.allclose(answer["upper"] - answer["prediction"], gaussian, rtol=1e-3)
    assert np.corrcoef(answer["prediction"], frame["rent"])[0, 1] > 0.9


@pytest.mark.parametrize(("level", "place"), [(0.9, 28), (0.5, 16), (0.96, 30)])
def test_intervals_of_a_machine_are_conformal(fitted, level, place):
    answer = fitted["rfm"].predict_frame(flats(40, seed=1), level=level)
    assert list(answer) == ["prediction", "lower", "upper"]
    errors = np.sort(np.abs(fitted["rfm"].held_out_["true"] - fitted["rfm"].held_out_["predicted"]))
    np.testing.assert_allclose(answer["upper"] - answer["prediction"], errors[place - 1])
    np.testing.assert_allclose(answer["prediction"] - answer["lower"], errors[place - 1])


def test_what_is_scored_of_a_process_is_the_interval_that_is_shown(fitted):
    kept, (own, *_) = fitted["gp"].held_out_, fitted["gp"].scores_
    inside = (kept["lower"] <= kept["true"]) & (kept["true"] <= kept["upper"])
    assert own["coverage"] == pytest.approx(inside.mean())
    # An interval of a level holds the truth from the narrowest that does on.
    np.testing.assert_array_equal(kept["narrowest"] <= 0.9 + 1e-9, inside)
    assert set(np.round(kept["narrowest"], 2)) <= {*np.round(np.linspace(0.05, 0.95, 19), 2), 1.0}
    assert len(set(kept["narrowest"])) > 5
    assert fitted["rfm"].held_out_["lower"] is fitted["rfm"].held_out_["narrowest"] is None


def test_intervals_are_by_folds_where_the_model_was_fitted_with_them():
    frame = flats(80)
    workflow = TablePrediction(options={**SIMPLE, "interval_folds": 3}, **NUMBERS).fit(frame, "rent")
    answer = workflow.predict_frame(frame.iloc[:20], level=0.8)
    table = frame.iloc[:20].reindex(columns=workflow.columns_)
    np.testing.assert_array_equal(
        answer[["lower", "upper"]], workflow.model_.predict_interval(table, 0.8, method="cv+")
    )
    kept, (own, *_) = workflow.held_out_, workflow.scores_
    inside = (kept["lower"] <= kept["true"]) & (kept["true"] <= kept["upper"])
    assert own["coverage"] == pytest.approx(inside.mean())


def test_intervals_that_too_few_rows_can_give_are_left_out(fitted):
    with pytest.warns(DataWarning, match=r"30 left-out rows are too few for intervals of level 0.99"):
        assert list(fitted["rfm"].predict_frame(flats(4), level=0.99)) == ["prediction"]


def test_columns_that_are_missing_at_prediction(fitted):
    for name in EVERY:
        with pytest.raises(DataFileError, match=r"no column 'city' \(nearest: 'City'\)"):
            fitted[name].predict_frame(flats(9).rename(columns={"city": "City"}))
    with pytest.raises(InvalidParameterError, match="level=1.5"):
        fitted["gp"].predict_frame(flats(9), level=1.5)


# ---- why -----------------------------------------------------------------------------------------------------


def test_importances_and_combinations_name_what_matters(fitted):
    for name in ("gp", "rfm", "classes"):
        shares = fitted[name].importances_
        assert set(shares) == set(fitted[name].columns_) == {"size", "city", "built", "rooms", "always"}
        assert sum(shares.values()) == pytest.approx(1.0)
        assert next(iter(shares)) == "size"
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        assert shares["always"] == 0.0
        first = fitted[name].combinations_[0]
        assert first["terms"][0][0] == "size"
        assert "city=Oslo" in dict(first["terms"])
        assert first["share"] > 0.5
    assert fitted["discriminant"].importances_ == {}
    assert fitted["discriminant"].combinations_ == []


def test_combinations_are_the_directions_of_the_metric(fitted):
    model = fitted["rfm"].model_
    names = list(model.encoder_.get_feature_names_out())
    rows, shares = model.estimator_.directions_, model.estimator_.direction_shares_
    found = fitted["rfm"].combinations_
    assert len(found) == min(3, np.sum(shares >= 0.05))
    for combination, row, share in zip(found, rows, shares, strict=False):
        assert combination["share"] == pytest.approx(share)
        sizes = [abs(weight) for _, weight in combination["terms"]]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) == min(5, np.sum(np.abs(row) >= 0.1))
        for name, weight in combination["terms"]:
            assert abs(weight) == pytest.approx(abs(row[names.index(name)]))


def test_a_diagonal_metric_has_no_combinations():
    options = SIMPLE | {"metric": "diagonal"}
    workflow = TablePrediction(options=options, test_size=0, **CLASSES).fit(flats(80), "dear")
    assert describe_combinations(workflow.model_) == workflow.combinations_ == []
    assert workflow.settings_["metric"] == "diagonal"


def test_settings_say_what_was_chosen(fitted):
    process, machine, discriminant = (fitted[name].settings_ for name in ("gp", "classes", "discriminant"))
    inner = fitted["gp"].model_.estimator_
    assert process == {
        "estimator": "GPRegressor",
        "kernel": "gaussian",
        "bandwidth": inner.kernel_.bandwidth,
        "metric": "full",
        "warped columns": "none",
        "ridge": inner.ridge_,
        "noise (standard deviation)": pytest.approx(np.sqrt(inner.noise_)),
        "models averaged": 1,
        "landmarks": "150 of 150 rows",
    }
    assert machine["estimator"] == "RFMClassifier"
    assert discriminant["estimator"] == "KernelDiscriminant"
    assert discriminant["discriminants"] == 1
    assert not {"metric", "noise (standard deviation)", "models averaged"} & set(discriminant)


def test_warped_columns_are_named():
    warps = SIMPLE | {"warp": "rank", "n_landmarks": 30}
    workflow = TablePrediction(options=warps, test_size=0, random_state=0).fit(
        flats(90)[["size", "rooms", "rent"]], "rent"
    )
    assert workflow.settings_["warped columns"] == "rank of size, rooms"
    assert workflow.settings_["landmarks"] == "30 of 90 rows"


def test_the_kind_of_each_input_is_told(fitted):
    expected = {"size": "number", "city": "category", "built": "date", "rooms": "number", "always": "constant"}
    assert fitted["gp"].kinds_ == expected


# ---- rows and columns ----------------------------------------------------------------------------------------


def test_rows_without_a_target_are_left_out():
    frame = flats()
    frame.loc[[0, 7, 9], "dear"] = None
    with pytest.warns(DataWarning, match="3 of 150 rows have no value in 'dear': they are left out"):
        workflow = TablePrediction("discriminant", **CLASSES).fit(frame, "dear")
    assert workflow.dropped_rows_ == 3
    assert workflow.n_train_ + workflow.n_test_ == 147
    np.testing.assert_array_equal(workflow.held_out_["true"], frame["dear"].to_numpy()[workflow.held_out_["rows"]])
    assert len(workflow.predict_frame(frame)) == 150
    frame["dear"] = None
    with pytest.raises(ValueError, match="'dear' has 0 values in 150 rows"):
        TablePrediction(**CLASSES).fit(frame, "dear")


def test_at_most_so_many_rows():
    with pytest.warns(DataWarning, match="60 of 150 rows are used, drawn at random"):
        workflow = TablePrediction("discriminant", max_rows=60, **CLASSES).fit(flats(), "dear")
    assert workflow.n_train_ + workflow.n_test_ == 60
    assert workflow.held_out_["rows"].max() > 60
    np.testing.assert_array_equal(workflow.held_out_["true"], flats()["dear"].to_numpy()[workflow.held_out_["rows"]])
    TablePrediction("discriminant", max_rows=150, **CLASSES).fit(flats(), "dear")


def test_whole_numbers_and_booleans_are_classes_of_their_own_type(tmp_path):
    frame = flats()
    for name, values, dtype in (
        ("grade", frame["rent"].rank(pct=True).mul(3).astype(int).clip(upper=2), "int64"),
        ("yes", frame["dear"] == "yes", "bool"),
    ):
        frame["t"] = values
        workflow = TablePrediction("discriminant", ignore=("id", "rent", "dear"), random_state=0).fit(frame, "t")
        answer = workflow.predict_frame(frame)
        assert answer["prediction"].dtype == dtype, name
        assert np.mean(answer["prediction"] == values) > 0.8
        mercer.save(workflow, tmp_path / name)
        pd.testing.assert_frame_equal(mercer.load(tmp_path / name).predict_frame(frame), answer)


def test_a_task_that_is_given_is_done():
    frame = flats(80)
    frame["grade"] = frame["rent"].rank(pct=True).mul(3).astype(int).clip(upper=2)
    common = {"ignore": ("id", "rent", "dear"), "random_state": 0, "test_size": 0}
    assert TablePrediction("discriminant", **common).fit(frame, "grade").task_ == "classification"
    as_regression = TablePrediction("gp", task="regression", options=SIMPLE, **common).fit(frame, "grade")
    assert as_regression.task_ == "regression"
    assert list(as_regression.predict_frame(frame)) == ["prediction", "std", "lower", "upper"]


def test_the_same_seed_gives_the_same(fitted):
    again = TablePrediction("discriminant", **CLASSES).fit(flats(), "dear")
    np.testing.assert_array_equal(again.held_out_["rows"], fitted["discriminant"].held_out_["rows"])
    pd.testing.assert_frame_equal(again.predict_frame(flats(9)), fitted["discriminant"].predict_frame(flats(9)))
    other = clone(again).set_params(random_state=1).fit(flats(), "dear")
    assert not np.array_equal(other.held_out_["rows"], again.held_out_["rows"])


def test_the_table_is_left_as_it_is():
    frame = flats(60)
    TablePrediction("discriminant", **CLASSES).fit(frame, "dear").predict_frame(frame)
    pd.testing.assert_frame_equal(frame, flats(60))


# ---- wrong calls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "target", "message"),
    [
        ({"model": "forest"}, "rent", r"model='forest' is not allowed.*'auto', 'rfm', 'gp', 'discriminant'"),
        ({"model": "discriminant"}, "rent", r"model='discriminant'.*'auto', 'gp', 'rfm'. The task is regression"),
        ({"task": "ranking"}, "rent", r"task='ranking'.*'auto', 'regression', 'classification'"),
        ({"test_size": 1.0}, "rent", r"test_size=1.0 is not allowed.*below 1"),
        ({"test_size": -0.1}, "rent", r"test_size=-0.1"),
        ({"max_rows": 1}, "rent", r"max_rows=1 .*at least 2"),
        ({"time_limit": 0}, "rent", r"time_limit=0 .*above 0"),
        ({"ignore": "id"}, "rent", r"ignore='id' is not allowed.*a sequence of names"),
        ({"ignore": ("ID ",)}, "rent", r"no column to ignore 'ID ' \(nearest: 'id'"),
        ({"ignore": ("rent",)}, "rent", r"ignore=.*without the target 'rent'"),
        ({}, "rend", r"no target column 'rend' \(nearest: 'rent'"),
        ({"options": {"kernels": "laplace"}}, "rent", r"options='kernels'.*a parameter of GPRegressor"),
        ({"task": "regression"}, "city", r"'city' is not a finite number in 1\d\d of 1\d\d rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
def test_wrong_calls(params, target, message):
    with pytest.raises(ValueError, match=message):
        TablePrediction(**params).fit(flats(), target)


def test_something_must_be_left_to_learn_from():
    with pytest.raises(DataFileError, match="no column is left to learn from beside the target 'rent'"):
        TablePrediction(ignore=("size",)).fit(flats()[["size", "rent"]], "rent")
    with pytest.raises(InvalidParameterError, match="frame='ndarray' is not allowed: frame must be a data frame"):
        TablePrediction().fit(np.eye(3), "rent")


@pytest.mark.parametrize(("n_rows", "landmarks"), [(MOST_EXACT_ROWS, None), (MOST_EXACT_ROWS + 1, LANDMARKS)])
def test_many_rows_make_discriminants_of_landmarks(n_rows, landmarks):
    assert make("discriminant", "classification", n_rows, 0, None).n_landmarks == landmarks
    assert make("discriminant", "classification", n_rows, 0, {"n_landmarks": 7}).n_landmarks == 7


def test_every_estimator_gets_its_seed_and_its_options():
    for task, kinds in ESTIMATORS.items():
        for name, kind in kinds.items():
            estimator = make(name, task, 100, 5, {"kernel": "laplace"})
            assert type(estimator) is kind
            assert (estimator.random_state, estimator.kernel) == (5, "laplace")
            if name != "discriminant":
                assert make(name, task, 100, 5, time_limit=3.0).time_limit == 3.0


@pytest.mark.parametrize("better", ["rfm", "discriminant"])
def test_classes_get_the_model_that_does_better_on_rows_kept_back(monkeypatch, better):
    frame, seen = flats(200), []

    def weak_or_strong(name, task, n_rows, seed, options, time_limit):
        seen.append((name, n_rows))
        return LogisticRegression() if name == better else DummyClassifier()

    monkeypatch.setattr(table_prediction, "make", weak_or_strong)
    monkeypatch.setattr(table_prediction, "describe_settings", lambda *_: {})
    monkeypatch.setattr("mercer.app.projects.scored_split.explain_wrong", lambda *_: [])  # these are no sums over rows
    model = TablePrediction(ignore=("id", "rent"), random_state=0).fit(frame, "dear")
    assert model.chosen_ == better == next(iter(model.compared_))
    assert list(model.compared_.values()) == sorted(model.compared_.values())
    # Compared on three quarters of the 160 rows to learn from; then the better one learns from these, and from all.
    assert sorted(seen[:2]) == [("discriminant", 120), ("rfm", 120)]
    assert seen[2:] == [(better, 160), (better, 200)]


def test_where_rows_are_few_nothing_is_compared():
    model = TablePrediction(options=SIMPLE, ignore=("id", "rent"), test_size=0, random_state=0).fit(flats(30), "dear")
    assert model.compared_ == {"rfm": None}
    assert allowed_models("auto", "classification", {"warp": "none"}) == ["rfm"]
    assert allowed_models("auto", "classification", {"kernel": "laplace"}) == ["rfm", "discriminant"]
    assert allowed_models("auto", "classification", {"kernels": "laplace"}) == ["rfm"]
    assert allowed_models("auto", "regression", {"noise": 1.0}) == ["gp"]
    assert compare(["rfm", "discriminant"], lambda *_: 1 / 0, np.arange(39) % 2, np.random.RandomState(0)).keys() == {
        "rfm"
    }
    asked = []
    compare(["a", "b"], lambda *call: asked.append(call) or 1.0, np.arange(40) % 2, np.random.RandomState(0))
    assert [call[0] for call in asked] == ["a", "b"]
    train, test = asked[0][1:]
    assert len(test) == 10
    assert sorted([*train, *test]) == list(range(40))
