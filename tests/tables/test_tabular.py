"""`tabular`: any estimator on a table as it comes; importances under the table's names; files without pickle."""

import importlib.util
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import mercer
from mercer import KernelDiscriminant, Mahalanobis, Nystrom, TableEncoder, TabularModel, tabular
from mercer.exceptions import DataWarning, InvalidParameterError
from tests.example_tables import houses, in_a_fresh_process
from tests.model_files import same, there_and_back


def test_wrong_estimators_are_named():
    for wrong in (KernelDiscriminant, "rfm", None):
        with pytest.raises(InvalidParameterError, match="estimator must be an estimator"):
            tabular(wrong).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(InvalidParameterError, match="encoder must be a TableEncoder or None"):
        TabularModel(Ridge(), encoder=Ridge()).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(TypeError, match="scales"):
        tabular(Ridge(), scales=True)


def test_tabular_is_a_function_whatever_is_imported_first():
    """A module of that name would take its place as soon as it is imported."""
    assert importlib.util.find_spec("mercer.tabular") is None
    code = """
import mercer.tables, mercer.tables.model, mercer.io
print(type(mercer.tabular).__name__)
from mercer import tabular
print(tabular is mercer.tables.tabular is mercer.tabular)
"""
    assert in_a_fresh_process(code).split() == ["function", "True"]


# ---- the model -------------------------------------------------------------------------------------------------


class Learned(RegressorMixin, BaseEstimator):
    """Learns a metric and the spread of its errors, as the family's estimators do."""

    def __init__(self, standardize=False):
        self.standardize = standardize

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X
        self.weight_ = sample_weight
        weights = 1.0 + np.arange(X.shape[1])
        self.metric_ = Mahalanobis.from_weights(weights)
        self.feature_importances_ = weights / weights.sum()
        return self

    def predict(self, X, return_std=False):
        mean = np.asarray(X).sum(axis=1)
        return (mean, np.abs(mean)) if return_std else mean


def test_end_to_end_with_classes_in_strings():
    table, y = houses(400)
    model = tabular(KernelDiscriminant(random_state=0)).fit(table[:300], y[:300])
    assert list(model.classes_) == ["cheap", "dear"]
    assert model.score(table[300:], y[300:]) > 0.75
    np.testing.assert_allclose(model.predict_proba(table[300:]).sum(axis=1), 1.0)
    encoded = model.encoder_.transform(table)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        assert same(getattr(model, method)(table), getattr(model.estimator_, method)(encoded))
    assert same(model.fit_transform(table, y), model.transform(table))
    assert list(model.feature_names_in_) == list(table)
    assert model.n_features_in_ == table.shape[1]
    assert list(model.estimator_.feature_names_in_) == list(model.encoder_.get_feature_names_out())


def test_the_model_has_the_methods_of_its_estimator():
    for estimator, classifies in ((KernelDiscriminant(), True), (Ridge(), False)):
        model = tabular(estimator)
        for method in ("predict_proba", "transform", "set_output", "decision_function", "fit_transform"):
            assert hasattr(model, method) == classifies
        assert (is_classifier(model), is_regressor(model)) == (classifies, not classifies)
        assert (get_tags(model).transformer_tags is not None) == classifies
    assert not hasattr(tabular(Nystrom()), "predict")
    assert get_tags(tabular(Ridge())).input_tags.allow_nan
    model = tabular(KernelDiscriminant())
    for name in ("classes_", "feature_importances_", "importances_", "metric_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])
    table, y = houses()
    for name in ("feature_importances_", "importances_", "metric_"):
        assert not hasattr(model.fit(table, y), name)
    assert tabular(Nystrom(n_landmarks=20, random_state=0)).fit(table).transform(table).shape[0] == 150


def test_options_and_weights_reach_the_estimator():
    table, _ = houses()
    y, weight = np.arange(150.0), pd.Series(np.linspace(0.0, 1.0, 150))
    model = tabular(Learned()).fit(table, y, sample_weight=weight)
    assert model.estimator_.weight_ is weight
    mean, std = model.predict(table, return_std=True)
    assert same(std, np.abs(mean))
    unweighted, weighted = model.score(table, y), model.score(table, y, sample_weight=weight)
    assert weighted != unweighted


def test_a_fit_that_fails_leaves_the_old_model():
    table, y = houses()
    model = tabular(KernelDiscriminant(random_state=0)).fit(table, y)
    before = model.predict_proba(table)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(pd.DataFrame({"x": [1.0, 2.0, np.inf, 4.0]}), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="missing values in 1 of 150 rows"):
        model.fit(table, [None, *y[1:]])
    model.estimator = KernelDiscriminant(ridge=-1.0)
    with pytest.raises(InvalidParameterError, match="ridge=-1"):
        model.fit(table[["age"]].fillna(0.0), y)
    assert list(model.feature_names_in_) == list(table)
    assert same(model.predict_proba(table), before)


@pytest.mark.parametrize("name", ["RFMRegressor", "RFMClassifier", "GPRegressor"])
def test_weights_are_routed_in_a_pipeline(name):
    random = np.random.default_rng(0)
    X, weight = random.normal(size=(60, 2)), np.repeat([1.0, 0.0], 30)
    y = (X[:, 0] + np.repeat([0.0, 5.0], 30) * X[:, 1] > 0).astype(float)
    estimator = getattr(mercer, name)("gaussian", "identity", warp="none", random_state=0)
    with config_context(enable_metadata_routing=True):
        asking = clone(estimator).set_fit_request(sample_weight=True)
        answers = []
        for model in (asking, tabular(asking)):
            pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y, sample_weight=weight)
            answers.append(pipeline.predict(X))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            tabular(estimator).fit(X, y, sample_weight=weight)
        scored = tabular(clone(asking).set_score_request(sample_weight=True)).fit(X, y, sample_weight=weight)
        assert scored.score(X, y, sample_weight=weight) != scored.score(X, y)
    np.testing.assert_array_equal(answers[0], clone(estimator).fit(X, y, sample_weight=weight).predict(X))
    np.testing.assert_array_equal(answers[1], tabular(estimator).fit(X, y, sample_weight=weight).predict(X))
    assert (answers[1] != tabular(estimator).fit(X, y).predict(X)).any()


# ---- tables as people have them --------------------------------------------------------------------------------


def test_dates_with_a_weekly_pattern_and_a_trend():
    random = np.random.default_rng(0)
    day = pd.date_range("2021-01-04", periods=700, freq="D")
    rows = random.permutation(700)
    weekly = np.array([2.0, 1.0, 0.0, 0.5, 3.0, -2.0, -3.0])[day.day_of_week]
    y = weekly + 0.005 * np.arange(700) + 0.3 * random.normal(size=700)
    table = pd.DataFrame({"day": day.strftime("%Y-%m-%d"), "noise": random.normal(size=700)})
    train, test = rows[:400], rows[400:]
    model = tabular(mercer.RFMRegressor(random_state=0)).fit(table.iloc[train], y[train])
    assert model.score(table.iloc[test], y[test]) > 0.9
    assert model.importances_.index[0] == "day"


def test_intervals_are_wider_where_a_column_that_counts_is_missing():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(700, 3)), columns=list("abc"))
    y = 2.0 * table["a"] + np.sin(2.0 * table["b"]) + 0.3 * random.normal(size=700)
    hole = random.random(700) < 0.2
    table.loc[hole, "a"] = None
    model = tabular(mercer.GPRegressor("matern32", "ard", warp="none", random_state=0)).fit(table[:400], y[:400])
    mean, std = model.predict(table[400:], return_std=True)
    hole, inside = hole[400:], np.abs(y[400:] - mean) < 1.645 * std
    assert std[hole].mean() > 3.0 * std[~hole].mean()
    assert inside[hole].mean() > 0.75
    assert 0.85 < inside[~hole].mean() < 0.97


def test_importances_come_back_under_the_names_of_the_table():
    table, _ = houses()
    with pytest.warns(DataWarning, match="'empty'"):
        model = tabular(Learned()).fit(table.assign(empty=None), np.arange(150.0))
    encoded = model.estimator_.seen_.to_numpy()
    diagonal = 1.0 + np.arange(encoded.shape[1])
    expected = dict.fromkeys([*table, "empty"], 0.0)
    for name, weight in zip(model.encoder_.get_feature_names_out(), diagonal, strict=True):
        owner = max((column for column in table if name.startswith(column)), key=len)
        expected[owner] += weight
    expected = pd.Series(expected) / sum(expected.values())
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-10)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    series = model.importances_
    assert series.is_monotonic_decreasing
    assert set(series.index) == {*table, "empty"}
    assert series["constant"] == series["empty"] == 0.0
    np.testing.assert_allclose(series[expected.index], expected, rtol=1e-10)


def test_importances_of_an_estimator_that_standardizes_are_sums():
    table, _ = houses()
    model = tabular(Learned(standardize=True)).fit(table, np.arange(150.0))
    weights = 1.0 + np.arange(len(model.encoder_.origins_))
    expected = np.bincount(model.encoder_.origins_, weights=weights, minlength=table.shape[1]) / weights.sum()
    np.testing.assert_allclose(model.feature_importances_, expected)


def test_importances_without_a_metric_are_sums():
    table, _ = houses()
    target = table["age"].fillna(0.0) + 30.0 * (table["city"] == "Oslo")
    model = tabular(RandomForestRegressor(20, random_state=0)).fit(table, target)
    by_hand = pd.Series(model.estimator_.feature_importances_).groupby(model.encoder_.origins_).sum()
    np.testing.assert_allclose(model.feature_importances_[by_hand.index], by_hand)
    assert list(model.importances_.index[:2]) == ["age", "city"]
    array = tabular(RandomForestRegressor(5, random_state=0)).fit(np.random.default_rng(0).random((30, 2)), range(30))
    assert set(array.importances_.index) == {"x0", "x1"}


def test_the_metric_comes_with_the_encoded_names():
    table, _ = houses()
    model = tabular(Learned()).fit(table, np.arange(150.0))
    M = model.metric_of_columns()
    names = list(model.encoder_.get_feature_names_out())
    assert list(M.index) == list(M.columns) == names
    np.testing.assert_allclose(np.diag(M), 1.0 + np.arange(len(names)))
    assert model.metric_ is model.estimator_.metric_
    model.estimator_.metric_ = Mahalanobis()
    np.testing.assert_array_equal(model.metric_of_columns(), np.eye(len(names)))
    with pytest.raises(AttributeError, match="not fitted"):
        tabular(Learned()).metric_of_columns()


@pytest.mark.parametrize("name", ["RFMRegressor", "GPRegressor"])
def test_learned_metrics_find_the_columns_whether_or_not_they_are_standardized(name):
    table, _ = houses(300)
    noise = np.random.default_rng(1).normal(scale=5.0, size=300)
    target = table["age"].fillna(40.0) + 30.0 * (table["city"] == "Oslo") + noise
    found = []
    for standardize in (True, False):
        options = {"metric": "diagonal", "warp": "none", "standardize": standardize, "random_state": 0}
        model = tabular(getattr(mercer, name)(kernel="gaussian", **options)).fit(table[:200], target[:200])
        assert model.score(table[200:], target[200:]) > 0.9
        assert list(model.importances_.index[:2]) == ["age", "city"]
        assert model.metric_of_columns().shape == (len(model.encoder_.origins_),) * 2
        found.append(model.feature_importances_)
    # The units in which the estimator sees a column do not change what the column counts.
    np.testing.assert_allclose(found[0], found[1], atol=0.05)
    if name == "GPRegressor":
        mean, std = model.predict(table, return_std=True)
        assert mean.shape == std.shape == (300,)


def test_clones_and_searches():
    table, y = houses()
    discriminant = KernelDiscriminant(random_state=0)
    model = tabular(discriminant, n_components=4)
    copy = clone(model.fit(table, y))
    assert np.sum(model.encoder_.origins_ == list(table).index("description")) == 4 + 1  # and the mark of missing ones
    assert not hasattr(copy, "estimator_")
    assert copy.get_params()["encoder__n_components"] == 4
    assert not hasattr(discriminant, "classes_")
    search = GridSearchCV(
        tabular(discriminant),
        {"estimator__ridge": [1e-3, 1e6], "encoder__n_components": [2, 5]},
        cv=3,
        error_score="raise",
    )
    search.fit(table, y)
    assert search.best_params_["estimator__ridge"] == 1e-3
    assert search.predict(table).shape == (150,)


def test_set_output_leaves_the_callers_estimator_alone():
    table, y = houses()
    discriminant = KernelDiscriminant(random_state=0)
    model = tabular(discriminant).fit(table, y)
    assert isinstance(model.transform(table), np.ndarray)
    model.set_output(transform="pandas")
    assert isinstance(model.transform(table), pd.DataFrame)
    assert isinstance(clone(model).fit(table, y).transform(table), pd.DataFrame)
    assert isinstance(discriminant.fit(np.eye(6), [0, 1] * 3).transform(np.eye(6)), np.ndarray)


def test_a_second_fit_forgets_the_first():
    table, y = houses()
    model = tabular(KernelDiscriminant(random_state=0)).fit(table, y)
    X = np.random.default_rng(0).random((40, 3))
    model.fit(X, [0, 1] * 20)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model.encoder_, "feature_names_in_")
    assert model.n_features_in_ == 3
    assert isinstance(model.transform(X), np.ndarray)


# ---- what is to be predicted -----------------------------------------------------------------------------------


def test_targets_of_every_dtype():
    table, y = houses()
    expected = tabular(KernelDiscriminant(random_state=0)).fit(table, y.to_numpy(dtype=object)).predict_proba(table)
    for target in (y, y.astype("category"), y.astype("string"), y.astype(object), y.tolist(), y.to_frame().iloc[:, 0]):
        model = tabular(KernelDiscriminant(random_state=0)).fit(table, target)
        assert list(model.classes_) == ["cheap", "dear"]
        assert same(model.predict_proba(table), expected)
        assert model.score(table, target) == model.score(table, y)
    numbers = pd.Series(np.arange(150))
    expected = tabular(Ridge()).fit(table, numbers).predict(table)
    for dtype in ("Float64", "Int64", "float32", "category"):
        np.testing.assert_allclose(
            tabular(Ridge()).fit(table, numbers.astype(dtype)).predict(table), expected, rtol=1e-5
        )
    two = pd.DataFrame({"a": numbers, "b": numbers.astype("Float64")})
    assert tabular(Ridge()).fit(table, two).predict(table).shape == (150, 2)
    assert list(tabular(KernelDiscriminant()).fit(table, pd.Series(y == "dear", dtype="boolean")).classes_) == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    "target",
    [
        pd.Series(["a", None, "b", None]),
        pd.Series(["a", None, "b", None], dtype="category"),
        pd.Series(["a", pd.NA, "b", pd.NA], dtype="string"),
        pd.Series([1.0, None, 2.0, None]),
        pd.Series([1, None, 2, None], dtype="Int64"),
        [1.0, np.nan, 2.0, None],
        np.array([1.0, np.nan, 2.0, np.nan]),
        np.array(["a", None, "b", np.nan], dtype=object),
        np.array(["a", pd.NA, "b", pd.NaT], dtype=object),
        pd.DataFrame({"u": [1.0, None, 2.0, 3.0], "v": [1.0, 2.0, 2.0, None]}),
    ],
    ids=lambda target: f"{type(target).__name__} {getattr(target, 'dtype', '')}",
)
def test_missing_targets_are_counted(target):
    message = r"y contains NaN or missing values in 2 of 4 rows \(counted from 0: 1, 3\)"
    with pytest.raises(ValueError, match=message):
        tabular(Ridge()).fit(pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0]}), target)


# ---- files -----------------------------------------------------------------------------------------------------


def test_a_saved_model_answers_alike_in_a_fresh_process_without_skrub(tmp_path):
    table, y = houses()
    new, _ = houses(60, seed=5)
    new.loc[:5, "city"] = "Atlantis"
    model = tabular(KernelDiscriminant(random_state=0)).fit(table, y)
    expected = [model.encoder_.transform(new), model.predict_proba(new)]
    mercer.save(model, tmp_path / "model.mercer")
    new.to_pickle(tmp_path / "new")
    code = """
import sys
sys.modules["skrub"] = None
import numpy, pandas, torch, mercer
torch.set_num_threads(1)
folder = sys.argv[1]
model, new = mercer.load(folder + "/model.mercer"), pandas.read_pickle(folder + "/new")
numpy.save(folder + "/encoded.npy", model.encoder_.set_output(transform="default").transform(new))
numpy.save(folder + "/probabilities.npy", model.predict_proba(new))
"""
    in_a_fresh_process(code, tmp_path)
    model.encoder_.set_output(transform="default")
    assert same(np.load(tmp_path / "encoded.npy"), np.asarray(expected[0]))
    assert same(np.load(tmp_path / "probabilities.npy"), expected[1])


def test_models_come_back_whole(tmp_path):
    table, y = houses()
    encoder = TableEncoder(kinds={"class": "text"}, n_components=5).fit(table)
    model = tabular(KernelDiscriminant(random_state=0), cardinality_threshold=30).fit(table, y.astype("category"))
    model.set_output(transform="pandas")
    for fitted in (encoder, model, tabular(Nystrom(n_landmarks=9, random_state=0)).fit(table)):
        loaded = there_and_back(fitted, tmp_path)
        assert vars(loaded).keys() == vars(fitted).keys()
        assert loaded.get_params().keys() == fitted.get_params().keys()
        assert same(np.asarray(loaded.transform(table)), np.asarray(fitted.transform(table)))
        assert same(loaded.feature_names_in_, fitted.feature_names_in_)
    loaded = there_and_back(model, tmp_path)
    assert loaded.encoder_.kinds_ == model.encoder_.kinds_
    assert same(loaded.predict(table), model.predict(table))
    assert isinstance(loaded.transform(table), pd.DataFrame)
    assert loaded.encoder.cardinality_threshold == 30
    assert loaded.fit(table, y).score(table, y) == model.score(table, y)


def test_estimators_of_others_cannot_be_saved_and_say_so(tmp_path):
    with pytest.raises(TypeError, match="estimator is a sklearn.*Ridge, which cannot be saved"):
        mercer.save(tabular(Ridge()), tmp_path / "model")


def test_no_warning_where_all_is_well():
    table, y = houses()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tabular(KernelDiscriminant(random_state=0)).fit(table, y).predict(table)
