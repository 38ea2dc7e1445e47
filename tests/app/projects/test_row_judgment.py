"""Planted identifiers, groups, copies, time order and leaks are found in tables, and none is cried on honest ones."""

import numpy as np
import pandas as pd
import pytest

from mercer.app.files.reading import as_table
from mercer.app.projects import TablePrediction
from mercer.app.projects.row_judgment import check_split, judge_rows
from mercer.app.projects.table_split import SplitPlan, split_rows
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError
from tests.app.projects.test_table_prediction import SIMPLE

SEEDS = range(20)


def table(seed, n=300):
    """An honest table with its target: numbers, counts, categories and days in no order; some noise or more."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 3))
    city, rooms = random.choice(["Oslo", "Rome", "Paris"], n), random.poisson(3, n)
    y = (
        2.0 * x[:, 0]
        + np.sin(3.0 * x[:, 1])
        + (city == "Oslo")
        + random.choice([0.2, 0.5, 1.0]) * random.normal(size=n)
    )
    frame = pd.DataFrame({"width": x[:, 0], "height": x[:, 1], "mass": x[:, 2], "city": city, "rooms": rooms})
    frame["built"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(random.integers(0, 5000, n), unit="D")
    frame["people"] = random.permutation(10 * n)[:n] * 7 + 1000  # all different, and no identifier
    frame.loc[random.random(n) < 0.1, "mass"] = np.nan
    return frame, y


def as_classes(y):
    return np.where(y > np.quantile(y, 0.6), "dear", "cheap")


def judge(frame, y, split="auto", kinds=None):
    read = as_table(frame, kinds)
    inputs = {name: reading.kind for name, reading in read.readings.items()}
    return judge_rows(split, read.frame, inputs, y, is_class=y.dtype.kind not in "iuf", asked=read.asked)


def found(judged, kind):
    return [finding.column for finding in judged.findings if finding.kind == kind]


# ---- nothing is cried ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_cried_on_honest_tables(seed):
    frame, y = table(seed)
    for target in (y, as_classes(y)):
        judged = judge(frame, target)
        assert judged.findings == []
        assert (judged.plan.kind, judged.left_out) == ("random", [])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_that_is_sorted_is_not_in_time(seed):
    """By the target, by its classes, or by an input."""
    frame, y = table(seed)
    for order in (np.argsort(y), np.argsort(frame["height"].to_numpy()), np.argsort(frame["people"].to_numpy())):
        assert judge(frame.iloc[order].reset_index(drop=True), y[order]).findings == []
    order = np.argsort(as_classes(y), kind="stable")
    assert judge(frame.iloc[order].reset_index(drop=True), as_classes(y)[order]).findings == []


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_rows_of_few_categories_are_no_copies(seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({name: random.choice(list("abc"), 300) for name in ("one", "two", "three")})
    frame["age"] = random.integers(0, 10, 300)
    y = frame["age"] + random.normal(size=300)
    assert judge(frame, y.to_numpy()).findings == []


def test_names_that_only_look_like_those_of_identifiers():
    frame, y = table(0)
    random = np.random.default_rng(0)
    counts = random.integers(0, 15, len(y))
    for name in ("no of rooms", "paid", "households", "centroid-row", "index of refraction", "key figure"):
        assert judge(frame.assign(**{name: counts}), y).findings == []


# ---- what is planted is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_identifiers(seed):
    frame, y = table(seed)
    random, n = np.random.default_rng(seed), len(y)
    planted = {
        "row": np.arange(1, n + 1),
        "id": random.permutation(10**6)[:n],
        "customer": [f"C-{i:05d}" for i in random.permutation(10**4)[:n]],
        "person": [f"{random.choice(['Ann', 'Bob', 'Cem'])} Number{i}" for i in range(n)],
        "Order ID": random.permutation(10**6)[:n],
        "orderId": random.permutation(10**6)[:n],
        "key": [random.bytes(8).hex() for _ in range(n)],
    }
    for name, values in planted.items():
        judged = judge(frame.assign(**{name: values}), y)
        assert found(judged, "identifier") == [name]
        assert judged.left_out == [name]
        assert len(judged.findings) == 1
    # A column whose kind was given is an input.
    assert judge(frame.assign(row=planted["row"]), y, kinds={"row": "number"}).left_out == []


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_and_groups(seed):
    frame, y = table(seed)
    random = np.random.default_rng(seed)
    again = np.concatenate([np.arange(len(y)), random.choice(len(y), 60, replace=False)])
    again = random.permutation(again)
    judged = judge(frame.iloc[again].reset_index(drop=True).assign(id=np.arange(len(again))), y[again])
    assert found(judged, "copies") == [""]
    assert "60 of 360 rows are copies" in " ".join(finding.text for finding in judged.findings)
    train, test = split_rows(y[again], "regression", 0.2, np.random.RandomState(seed), judged.plan)
    assert not set(again[train]) & set(again[test])
    assert abs(len(test) - 72) <= 2
    patients = random.integers(0, 60, len(y))
    for name in ("patient", "patient_id", "subject no", "household"):
        judged = judge(frame.assign(**{name: patients}), y)
        assert (judged.plan.kind, judged.plan.column, judged.left_out) == ("group", name, [name])
        train, test = split_rows(as_classes(y), "classification", 0.2, np.random.RandomState(seed), judged.plan)
        assert not set(patients[train]) & set(patients[test])
        assert set(as_classes(y)[train]) == {"dear", "cheap"}
        assert 40 <= len(test) <= 60


@pytest.mark.parametrize("seed", SEEDS)
def test_time(seed):
    frame, y = table(seed)
    random, n = np.random.default_rng(seed), len(y)
    days = pd.date_range("2020-01-01", periods=n).to_numpy()
    for name, values in {"day": days, "year": 1700 + np.arange(n), "t": np.sort(random.random(n))}.items():
        judged = judge(frame.assign(**{name: values}), y)
        assert found(judged, "time") == [name]
        train, test = split_rows(y, "regression", 0.2, random, judged.plan)
        assert train.max() < test.min() == n - 60
    # The latest first.
    judged = judge(frame.assign(day=days[::-1]), y)
    train, test = split_rows(y, "regression", 0.2, random, judged.plan)
    assert test.max() < train.min() == 60
    # Nothing says the time, but what inputs leave unexplained wanders.
    wandering = y + np.cumsum(random.normal(size=n))
    assert found(judge(frame, wandering), "time") == [""]
    assert found(judge(frame.assign(id=np.arange(n)), as_classes(wandering)), "time") == [""]


@pytest.mark.parametrize("seed", SEEDS)
def test_leaks(seed):
    frame, y = table(seed)
    random, n = np.random.default_rng(seed), len(y)
    classes = as_classes(y)
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    duration = np.round(30 + 5 * (y - y.min()))
    numbers = {
        "with tax": 1.19 * y + 0.02 * random.normal(size=n),
        "squared": (y - y.min()) ** 2,
        "rank": np.argsort(np.argsort(y)) + 0.5,
    }
    for name, values in numbers.items():
        assert found(judge(frame.assign(**{name: values}), y), "leak") == [name]
    for name, values in {
        "code": np.where(classes == "dear", 7, 3),
        "letter": np.where(classes == "dear", "D", "C"),
        "closed": pd.Series(start).where(classes == "dear"),
    }.items():
        assert found(judge(frame.assign(**{name: values}), classes), "leak") == [name]
    dates = frame.assign(begin=start, end=(start + pd.to_timedelta(duration, unit="D")).astype("datetime64[ns]"))
    assert found(judge(dates, duration), "leak") == ["end"]
    assert found(judge(dates.assign(end=dates["end"].dt.tz_localize("UTC")), duration), "leak") == ["end"]


# ---- what is asked for ---------------------------------------------------------------------------------------


def test_splits_that_are_asked_for():
    frame, y = table(0)
    assert judge(frame.assign(patient=np.arange(len(y)) % 50), y, "random").plan.kind == "random"
    by_city = judge(frame, y, "group:city")
    assert (by_city.plan.kind, by_city.left_out) == ("group", ["city"])
    in_rows = judge(frame, y, "time").plan
    np.testing.assert_array_equal(in_rows.times, np.arange(len(y)))
    train, test = split_rows(y, "regression", 0.2, None, judge(frame, y, "time:built").plan)
    assert frame["built"].iloc[train].max() < frame["built"].iloc[test].min()
    with pytest.raises(DataFileError, match="no column to split by 'cty' .nearest: 'city'."):
        judge(frame, y, "group:cty")
    with pytest.raises(DataFileError, match="--split time:city: the column holds neither dates nor numbers"):
        judge(frame, y, "time:city")
    for wrong in ("group", "random:city", "sometimes", "", None):
        with pytest.raises(InvalidParameterError, match="split=.* is not allowed"):
            check_split(wrong)


def test_rows_of_one_time_are_on_one_side():
    times = np.repeat([1.0, 2.0, 3.0, 4.0], 5)
    train, test = split_rows(times, "regression", 0.3, None, SplitPlan("time", None, "", times=times))
    assert set(times[test]) == {3.0, 4.0}
    assert set(times[train]) == {1.0, 2.0}
    one_group = SplitPlan("group", "who", "", groups=np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match="split by groups, leaves 0 rows to learn from"):
        split_rows(times, "regression", 0.3, np.random.RandomState(0), one_group)


def test_a_fit_says_what_it_has_found():
    """Tomorrow is harder than a day between two that are known; the fit says so and is scored on tomorrow."""
    frame, y = table(0, n=200)
    random = np.random.default_rng(0)
    frame = frame.assign(
        day=pd.date_range("2020-01-01", periods=200), id=np.arange(200), price=y + np.cumsum(random.normal(size=200))
    )
    options = {"model": "rfm", "options": SIMPLE, "random_state": 0}
    with pytest.warns(DataWarning, match="column 'id' is an identifier and left out: it counts the rows"):
        fitted = TablePrediction(**options).fit(frame, "price")
    assert fitted.split_ == {"kind": "time", "column": "day", "reason": "rows are in the order of 'day'"}
    assert [finding["kind"] for finding in fitted.findings_] == ["identifier", "time"]
    assert "id" not in fitted.columns_
    assert fitted.held_out_["rows"].min() == 160
    names = [row["name"] for row in fitted.scores_]
    assert names[1:3] == ["mean of the target", "value of the row before"]
    before = frame["price"].to_numpy()[159:199]
    truth = frame["price"].to_numpy()[160:]
    assert fitted.scores_[2]["rmse"] == pytest.approx(np.sqrt(np.mean((truth - before) ** 2)))
    kind = TablePrediction(split="random", ignore=("id",), **options).fit(frame, "price")
    assert kind.scores_[0]["rmse"] < 0.8 * fitted.scores_[0]["rmse"]
    with pytest.warns(DataWarning, match="identifier"):
        asked = TablePrediction(**options, split="group:city").fit(as_table(frame), "price")
    assert "city" not in asked.columns_
