"""Models of tables in files and with Dask, with categories and holes: what they learn is what they learn in memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier

from mercer import KernelDiscriminant, RFMRegressor, tabular
from mercer.exceptions import InvalidParameterError
from mercer.rows import open_rows
from mercer.tables.level_means import FOLDS, LevelMeans, Target
from mercer.tables.level_sums import folds_of

RANDOM = np.random.default_rng(0)
N = 240
TABLE = pd.DataFrame(
    {
        "size": np.where(RANDOM.random(N) < 0.1, np.nan, RANDOM.normal(size=N)),
        "kind": RANDOM.choice(["oak", "elm", "ash"], size=N),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RANDOM.integers(0, 700, size=N), unit="D"),
        "floor": RANDOM.integers(0, 4, size=N),
        "grade": pd.Categorical(RANDOM.choice(["1", "2"], size=N)),
    }
)
TABLE.loc[::17, "kind"] = None
NUMBERS = TABLE["size"].fillna(0.0) + (TABLE["kind"] == "oak") + 0.1 * RANDOM.normal(size=N)
CLASSES = np.where(NUMBERS > 0.4, "high", "low")
SETTINGS = {"n_landmarks": 30, "random_state": 0}
MODELS = {
    "rfm": (RFMRegressor("laplace", "identity", warp="none", **SETTINGS), NUMBERS.to_numpy(), "predict"),
    "discriminant": (KernelDiscriminant("gaussian", **SETTINGS), CLASSES, "predict_proba"),
}


def elsewhere(source, y, folder, table=TABLE):
    """Return the table and its target in files of uneven row groups, or in uneven partitions of Dask, one empty."""
    table = table.assign(y=y)
    if source == "files":
        table[:150].to_parquet(folder / "part-0.parquet", row_group_size=70)
        table[150:].to_parquet(folder / "part-1.parquet")
        rows = open_rows(folder)
        return rows.without("y"), rows.column("y")
    parts = [table[:130], table[130:130], table[130:131], table[131:]]
    frame = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    return frame.drop(columns="y"), frame["y"]


@pytest.mark.parametrize("source", ["files", "dask"])
@pytest.mark.parametrize("name", MODELS)
def test_a_table_that_is_brought_here_is_that_in_memory(name, source, tmp_path):
    model, y, asked = MODELS[name]
    X, target = elsewhere(source, y, tmp_path)
    here, there = tabular(model).fit(TABLE, y), tabular(model).fit(X, target)
    assert there.encoder_.kinds_ == here.encoder_.kinds_
    assert_allclose(np.asarray(getattr(there, asked)(X)), getattr(here, asked)(TABLE), rtol=1e-8, atol=1e-8)
    if source == "dask":
        assert getattr(there, asked)(X).chunks[0] == (130, 0, 1, 109)


@pytest.mark.parametrize("source", ["files", "dask"])
@pytest.mark.parametrize("name", MODELS)
def test_a_table_of_which_some_rows_are_drawn_is_encoded_as_in_memory(name, source, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables.elsewhere.MOST_ENCODED_ROWS", 120)
    monkeypatch.setattr("mercer.tabular_models.all_rows.MOST_TABLE_ROWS", 220)
    monkeypatch.setattr("mercer.blocks.ROWS_A_PART", 50)
    monkeypatch.setattr("mercer.rows.loop.ROWS_A_PART", 50)
    model, y, asked = MODELS[name]
    X, target = elsewhere(source, y, tmp_path)
    there, here = tabular(model).fit(X, target), tabular(model).fit(TABLE, y)
    assert there.encoder_.kinds_ == here.encoder_.kinds_
    assert_array_equal(there.encoder_.get_feature_names_out(), here.encoder_.get_feature_names_out())
    assert_array_equal(there.encoder_.origins_, here.encoder_.origins_)
    assert_allclose(there.encoder_.variances_, here.encoder_.variances_, rtol=1e-12)
    for one, other in zip(there.encoder_.columns_, here.encoder_.columns_, strict=True):
        assert (one.name, one.marked) == (other.name, other.marked)
        for part in ("kept", "fill", "center", "factor"):
            assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-10, atol=1e-12)
    # Draws of an estimator go by the last bits of its rows: it is compared on the very same ones.
    encoded = there.encoder_.transform(TABLE)
    assert_allclose(encoded, here.encoder_.transform(TABLE), rtol=1e-10, atol=1e-10)
    alone = clone(model).fit(encoded, y)
    assert_allclose(np.asarray(getattr(there, asked)(X)), getattr(alone, asked)(encoded), rtol=1e-8, atol=1e-8)


def test_leaves_of_a_table_elsewhere_keep_all_of_its_rows(tmp_path, monkeypatch):
    for module in ("tables.elsewhere.MOST_ENCODED_ROWS", "tabular_models.all_rows.MOST_TABLE_ROWS"):
        monkeypatch.setattr(f"mercer.{module}", 200)
    X, target = elsewhere("files", NUMBERS.to_numpy(), tmp_path)
    model = tabular(RFMRegressor("laplace", "identity", warp="none", random_state=0)).fit(X, target)
    assert len(model.estimator_.row_index_) == N
    with pytest.raises(InvalidParameterError, match=r"'auto' or a number for more than 200 rows"):
        tabular(RFMRegressor(n_landmarks=None)).fit(X, target)


# ---- means of levels ---------------------------------------------------------------------------------------------

SHOPS = pd.DataFrame({"size": RANDOM.normal(size=N), "shop": [f"shop {i}" for i in RANDOM.integers(0, 80, size=N)]})
SHOPS.loc[5::40, "shop"] = None


class Seen(RegressorMixin, BaseEstimator):
    """What an estimator is given, and nothing else."""

    def fit(self, X, y):
        self.X_ = np.asarray(X)
        return self


class SeenByClassifier(ClassifierMixin, Seen):
    """The same for classes."""


@pytest.fixture
def small_draw(monkeypatch):
    monkeypatch.setattr("mercer.tables.elsewhere.MOST_ENCODED_ROWS", 100)


def the_means(model):
    return next(each for each in model.encoder_.columns_ if isinstance(each.reader, LevelMeans))


@pytest.mark.parametrize("source", ["files", "dask"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [(Seen(), NUMBERS.to_numpy()), (SeenByClassifier(), CLASSES), (SeenByClassifier(), np.arange(N) % 3)],
)
def test_means_of_levels_are_those_of_all_rows(source, estimator, y, tmp_path, small_draw):
    model = tabular(estimator, kinds={"shop": "category"}).fit(*elsewhere(source, y, tmp_path, SHOPS))
    reader = the_means(model).reader
    target = Target.classes(y) if is_classifier(estimator) else Target.numbers(y)
    everything = LevelMeans.fit(SHOPS["shop"], target)
    assert (reader.levels, reader.missing) == (everything.levels, everything.missing)
    assert_allclose(reader.mean, target.values.mean(axis=0))
    for level, mean in zip([*reader.levels, None], reader.means, strict=True):
        own = target.values[SHOPS["shop"].isna() if level is None else SHOPS["shop"] == level]
        expected = (own.sum(axis=0) + reader.weight * reader.mean) / (len(own) + reader.weight)
        assert_allclose(mean, expected, rtol=1e-12)


@pytest.mark.parametrize("source", ["files", "dask"])
def test_the_estimator_sees_means_in_which_the_row_itself_has_no_part(source, tmp_path, small_draw):
    y = NUMBERS.to_numpy()
    model = tabular(Seen(), kinds={"shop": "category"}, scale=False)
    model.fit(*elsewhere(source, y, tmp_path, SHOPS))
    names, reader = list(model.encoder_.get_feature_names_out()), the_means(model).reader
    shops, folds = SHOPS["shop"].fillna("-").to_numpy(), folds_of(np.arange(N))
    expected = []
    for shop, fold in zip(shops, folds, strict=True):
        others = y[(shops == shop) & (folds != fold)]
        expected.append((others.sum() + reader.weight * y.mean()) / (len(others) + reader.weight))
    assert_allclose(model.estimator_.X_[:, names.index("shop: mean of y")], expected, rtol=1e-10)


def test_folds_of_rows_are_of_one_size_and_have_no_period():
    folds = folds_of(np.arange(100_000))
    assert_allclose(np.bincount(folds, minlength=FOLDS) / 100_000, 1 / FOLDS, rtol=0.01)
    for period in range(2, 50):
        shares = np.bincount(folds[::period], minlength=FOLDS) / len(folds[::period])
        assert_allclose(shares, 1 / FOLDS, rtol=0.1)
