"""Categories of many levels: the target's shrunken means, in which a row's own target has no part."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import TargetEncoder

from mercer import KernelDiscriminant, Nystrom, TableEncoder, tabular
from mercer.exceptions import InvalidParameterError
from mercer.tables import choice, level_means
from mercer.tables.level_means import LevelMeans, Target
from mercer.tables.readers import Categories
from mercer.tables.text import Texts
from tests.model_files import same, there_and_back


def shops(n=1000, levels=300, seed=0, effect=1.0):
    """A table with a column of many levels, and a target that depends on it."""
    random = np.random.default_rng(seed)
    codes, effects = random.integers(0, levels, n), effect * random.normal(size=levels)
    table = pd.DataFrame({"a": random.normal(size=n), "shop": [f"shop {code * 7919 % 10007}" for code in codes]})
    return table, effects[codes] + 0.3 * random.normal(size=n)


# ---- the maths -------------------------------------------------------------------------------------------------


def test_shrinkage_is_the_ratio_of_the_variance_components():
    """Against the analysis of variance of a textbook, level by level."""
    random = np.random.default_rng(0)
    codes = np.concatenate([np.arange(40), random.integers(0, 40, 160)])
    Y = random.normal(size=(40, 2))[codes] + random.normal(size=(200, 2))
    within = among = 0.0
    groups = [Y[codes == level] for level in range(40)]
    for group in groups:
        within += ((group - group.mean(axis=0)) ** 2).sum() / (200 - 40)
        among += len(group) * ((group.mean(axis=0) - Y.mean(axis=0)) ** 2).sum() / (40 - 1)
    size = (200 - sum(len(group) ** 2 for group in groups) / 200) / (40 - 1)
    assert level_means.shrinkage(codes, Y, 40) == pytest.approx(within / ((among - within) / size))


def test_shrinkage_finds_the_variances_and_its_bounds():
    random = np.random.default_rng(0)
    codes = random.integers(0, 2000, 20000)
    _, codes = np.unique(codes, return_inverse=True)
    n_levels = codes.max() + 1
    Y = 0.5 * random.normal(size=(n_levels, 1))[codes] + random.normal(size=(20000, 1))
    assert level_means.shrinkage(codes, Y, n_levels) == pytest.approx(4.0, rel=0.1)
    assert level_means.shrinkage(np.arange(5), Y[:5], 5) == 5.0  # no level comes again
    assert level_means.shrinkage(np.arange(40) % 2, np.tile([[1.0], [1.0], [2.0], [2.0]], (10, 1)), 2) == 40.0
    assert level_means.shrinkage(np.arange(40) % 2, np.tile([[1.0], [2.0]], (20, 1)), 2) == level_means.SMALLEST_WEIGHT


@pytest.mark.parametrize("classes", [False, True])
def test_means_are_those_of_scikit_learn_at_the_same_weight(classes):
    table, y = shops()
    y = np.digitize(y, [-0.5, 0.5]) if classes else y
    target = Target.classes(y) if classes else Target.numbers(y)
    reader = LevelMeans.fit(table["shop"], target)
    kind = "multiclass" if classes else "continuous"
    theirs = TargetEncoder(target_type=kind, smooth=reader.weight).fit(table[["shop"]], y)
    assert reader.levels == list(theirs.categories_[0])
    np.testing.assert_allclose(reader.means, np.stack(theirs.encodings_, axis=1))
    new = pd.DataFrame({"shop": [table["shop"][0], "elsewhere"]})
    np.testing.assert_allclose(reader.read(new["shop"]).raw, theirs.transform(new))


def test_folds_are_dealt_within_levels():
    codes = np.random.default_rng(0).integers(0, 60, 300)
    folds = level_means.dealt_folds(codes)
    for level in range(60):
        own = np.bincount(folds[codes == level], minlength=level_means.FOLDS)
        assert own.max() - own.min() <= 1
    assert np.ptp(np.bincount(folds)) == 0


def test_means_of_the_fit_leave_the_own_fold_out():
    table, y = shops(n=300, levels=80)
    target = Target.numbers(y)
    reader = LevelMeans.fit(table["shop"], target)
    raw, unreadable = reader.read_left_out(table["shop"], target)
    assert not unreadable.any()
    codes = np.array([reader.levels.index(shop) for shop in table["shop"]])
    folds = level_means.dealt_folds(codes)
    for i in range(300):
        others = y[(codes == codes[i]) & (folds != folds[i])]
        expected = (others.sum() + reader.weight * y.mean()) / (len(others) + reader.weight)
        assert raw[i, 0] == pytest.approx(expected)
    changed = y.copy()
    changed[7] += 100.0
    again = reader.read_left_out(table["shop"], Target.numbers(changed)).raw
    assert again[7] == raw[7]
    assert (again != raw).any()


def test_a_column_of_levels_that_say_nothing_teaches_nothing():
    """Means with a row's own target in them would say much of it in the fit, and nothing of new rows."""
    table, _ = shops(n=2000, levels=1000)
    y = np.random.default_rng(5).normal(size=2000)
    train, test = slice(0, 1000), slice(1000, 2000)
    model = tabular(LinearRegression()).fit(table[train], y[train])
    assert "shop: mean of y" in model.encoder_.get_feature_names_out()
    assert model.score(table[test], y[test]) > -0.02
    with_own = model.encoder_.transform(table[train])["shop: mean of y"]
    without = model.encoder_.fit_transform(table[train], y[train])["shop: mean of y"]
    assert np.corrcoef(with_own, y[train])[0, 1] > 0.5
    assert np.corrcoef(without, y[train])[0, 1] < 0.1


# ---- what is to be predicted -----------------------------------------------------------------------------------


def test_targets_are_numbers_or_classes():
    labels = np.array(["b", "a", "c", "a"])
    assert Target.classes(labels).values.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert Target.classes(labels).names == ["share of a", "share of b", "share of c"]
    two = Target.classes(np.array([True, False, True]))
    assert (two.values.tolist(), two.names) == ([[1], [0], [1]], ["share of True"])
    several = Target.numbers(np.ones((3, 2)))
    assert (several.values.shape, several.names) == ((3, 2), ["mean of y0", "mean of y1"])
    both = Target.classes(np.array([["a", "x"], ["b", "y"]]))
    assert (both.values.tolist(), both.names) == ([[0, 0], [1, 1]], ["share of b (y0)", "share of y (y1)"])
    for y, names in (
        (np.array([0.0, 1.0]), ["mean of y"]),
        (np.arange(30), ["mean of y"]),
        (np.array([0, 1, 1]), ["share of 1"]),
        (np.array([True, False]), ["share of True"]),
        (np.array(["no", "yes"], dtype=object), ["share of yes"]),
        (np.ones((2, 2)), ["mean of y0", "mean of y1"]),
    ):
        assert Target.guessed(y).names == names


def test_the_estimator_says_what_the_target_is():
    table, y = shops()
    whole = np.round(5.0 * y).astype(int) % 3
    for estimator, names in (
        (LinearRegression(), ["shop: mean of y"]),
        (LogisticRegression(), [f"shop: share of {k}" for k in range(3)]),
        (KernelDiscriminant(random_state=0), [f"shop: share of {k}" for k in range(3)]),
    ):
        encoder = tabular(estimator).fit(table, whole).encoder_
        assert list(encoder.get_feature_names_out()) == ["a", *names]
    # What is no classifier and no regressor learns without y, and is not to be told of it.
    unsupervised = tabular(Nystrom(n_landmarks=20, random_state=0)).fit(table, whole).encoder_
    assert unsupervised.kinds_["shop"] == "text"
    own = tabular(LinearRegression(), target_type="classes").fit(table, whole).encoder_
    assert list(own.get_feature_names_out()) == ["a", *[f"shop: share of {k}" for k in range(3)]]


def test_wrong_targets_are_named():
    table, y = shops(n=100)
    with pytest.raises(InvalidParameterError, match="target_type='number' is not allowed"):
        TableEncoder(target_type="number").fit(table, y)
    with pytest.raises(ValueError, match=r"X has 100 rows and y has the shape \(99,\)"):
        TableEncoder().fit(table, y[1:])
    with pytest.raises(ValueError, match="y contains infinity"):
        TableEncoder().fit(table, np.where(np.arange(100) == 3, np.inf, y))


# ---- which columns ---------------------------------------------------------------------------------------------


def test_levels_that_come_again_are_categories_and_text_stays_text():
    table, y = shops()
    random = np.random.default_rng(1)
    words = np.array(["garden", "river", "quiet", "central", "bright", "cellar", "balcony", "station"])
    table["words"] = [" ".join(random.choice(words, 5)) for _ in range(1000)]
    assert TableEncoder().fit(table, y).kinds_ == {"a": "number", "shop": "category", "words": "text"}
    assert TableEncoder().fit(table).kinds_ == {"a": "number", "shop": "text", "words": "text"}
    asked = TableEncoder(kinds={"words": "category", "shop": "text"}).fit(table, y)
    assert asked.kinds_ == {"a": "number", "shop": "text", "words": "category"}
    assert "words: mean of y" in asked.get_feature_names_out()
    assert TableEncoder().fit(table.astype({"shop": "category"}), y).kinds_["shop"] == "category"
    codes = pd.DataFrame({"code": np.arange(1000) % 100})
    assert TableEncoder(kinds={"code": "category"}).fit_transform(codes, y).shape == (1000, 1)
    assert TableEncoder(kinds={"code": "category"}).fit_transform(codes).shape == (1000, 100)


def test_frequent_levels_have_a_column_beside():
    table, y = shops()
    table.loc[:99, "shop"] = "market"
    encoder = TableEncoder().set_output(transform="pandas").fit(table, y)
    out = encoder.transform(table)
    assert list(out) == ["a", "shop=market", "shop: mean of y"]
    np.testing.assert_array_equal(out["shop=market"], table["shop"] == "market")
    assert list(encoder.origins_) == [0, 1, 1]
    assert [type(column.reader) for column in encoder.columns_[1:]] == [Categories, LevelMeans]


def test_text_stands_beside_where_like_texts_have_like_targets():
    random = np.random.default_rng(0)
    streets = np.array([f"{name} road {i}" for name in ("harbour", "castle", "station") for i in range(40)])
    street = random.choice(streets, 800)
    y = 3.0 * np.char.startswith(street.astype(str), "castle") + 0.3 * random.normal(size=800)
    table = pd.DataFrame({"street": street})
    found = TableEncoder(n_components=5).fit(table, y).columns_
    assert [type(column.reader) for column in found] == [LevelMeans, Texts]
    effects = dict(zip(streets, random.normal(size=120), strict=True))
    found = TableEncoder(n_components=5).fit(table, np.array([effects[s] for s in street])).columns_
    assert [type(column.reader) for column in found] == [LevelMeans]


def test_wide_tables_are_narrowed_by_the_columns_of_most_levels():
    random = np.random.default_rng(0)
    n_levels = {"few": 3, "some": 20, "more": 25, "most": 38}
    table = pd.DataFrame({name: [f"{k}!" for k in random.integers(0, k, 600)] for name, k in n_levels.items()})
    y = random.normal(size=600)
    assert TableEncoder().fit_transform(table).shape[1] == sum(n_levels.values())
    encoder = TableEncoder().fit(table, y)
    width = np.bincount(encoder.origins_)
    assert width[:3].tolist() == [3, 20, 25]
    assert width[3] < 38
    assert width.sum() <= 3 * 4 + 50
    assert encoder.kinds_ == dict.fromkeys(n_levels, "category")
    assert choice.width_of("x", [Categories(["a", "b"], True)]) == 3


def test_missing_and_new_values():
    table, y = shops()
    y = np.where(np.arange(1000) < 200, 50.0, y)
    table.loc[:199, "shop"] = None
    encoder = TableEncoder(scale=False).fit(table, y)
    out = encoder.transform(pd.DataFrame({"a": [0.0, 0.0], "shop": [None, "new"]}))
    assert out[0, 1] == pytest.approx(50.0, abs=0.5)  # a level of its own
    assert out[1, 1] == pytest.approx(y.mean())
    complete = TableEncoder(scale=False).fit(table[200:], y[200:])
    assert complete.transform(pd.DataFrame({"a": [0.0], "shop": [None]}))[0, 1] == pytest.approx(y[200:].mean())


def test_files_keep_the_means(tmp_path):
    table, y = shops()
    encoder = TableEncoder().fit(table, y)
    assert same(there_and_back(encoder, tmp_path).transform(table), encoder.transform(table))


def test_models_learn_from_levels():
    table, y = shops(n=1500)
    model = tabular(LinearRegression()).fit(table[:1000], y[:1000])
    assert model.score(table[1000:], y[1000:]) > 0.75
    by_text = tabular(LinearRegression(), kinds={"shop": "text"}).fit(table[:1000], y[:1000])
    assert by_text.score(table[1000:], y[1000:]) < 0.3
