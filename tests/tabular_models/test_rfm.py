"""RFMRegressor and RFMClassifier against the paper's loop by hand; weights, probabilities, bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax

from mercer import GPRegressor, Mahalanobis, RFMClassifier, RFMRegressor
from mercer.exceptions import DataWarning
from mercer.kernels import Laplace, Linear
from mercer.tabular_models.tuning import SMALLEST_GAIN, Iterate
from tests import naive
from tests.examples_of import labeled, numbers, rational
from tests.tabular_models.test_race import naive_judgment, splits
from tests.tabular_models.test_table import table_of

QUICK = {"metric": "identity", "warp": "none", "random_state": 0}
GIVEN = {"warp": "none", "bandwidth": None, "ridge": 0.1, "standardize": False, "random_state": 0}
BOTH = pytest.mark.parametrize("model", [RFMRegressor, RFMClassifier])


def rows(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 5.0 + 0.1 * random.normal(size=n)


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def data_for(model, n=40):
    return labeled(n) if model is RFMClassifier else rows(n)


@pytest.mark.parametrize("metric", ["identity", "diagonal", "full"])
def test_given_parameters_are_the_paper_s_loop(metric):
    X, y = rows(15)
    model = RFMRegressor(Laplace(1.3), metric, n_iter=2, iterate="last", **GIVEN).fit(X, y)
    M, centered = np.eye(3), y - y.mean()
    for _ in range(3 if metric != "identity" else 1):
        kernel = Laplace(1.3, metric=Mahalanobis.from_matrix(M))
        alpha = np.linalg.solve(naive.kernel_matrix(kernel, X, X) + 0.1 * np.eye(15), centered)
        M = naive.agop(kernel, X, X, alpha[:, None])
        M = (np.diag(np.diag(M)) if metric == "diagonal" else M) * 3 / np.trace(M)
    assert_allclose(model.predict(X + 0.1), y.mean() + naive.kernel_matrix(kernel, X + 0.1, X) @ alpha, atol=1e-6)
    assert model.ridge_ == 0.1


@pytest.mark.parametrize("metric", ["identity", "diagonal", "full"])
def test_the_score_left_out_is_that_of_metrics_that_had_not_seen_the_rows(metric):
    """Metrics are learned anew without each fold, in the random order of the search."""
    X, y = rows(15)
    model = RFMRegressor(Laplace(1.3), metric, n_iter=1, iterate="last", **GIVEN).fit(X, y)
    table = table_of(X, y).take(np.random.RandomState(0).permutation(15))
    plan = [Iterate(Laplace(1.3), 0.1)] * (1 if metric == "identity" else 2)
    _, errors, _ = naive_judgment(plan, metric, table, splits(15))
    assert model.loo_score_ == pytest.approx(1 - (errors**2).mean() / y.var(), abs=1e-6)
    if metric == "identity":
        plain, _ = naive.ridge_leave_one_out(naive.kernel_matrix(Laplace(1.3), X, X), y - y.mean(), 0.1, np.ones(15))
        assert model.loo_score_ == pytest.approx(1 - (plain**2).mean() / y.var(), abs=1e-8)


def test_the_score_left_out_is_weighted():
    X, y = rows(20)
    w = np.where(np.arange(20) < 10, 0.2, 5.0)
    model = RFMRegressor(Laplace(1.3), "identity", **GIVEN).fit(X, y, sample_weight=w)
    centered = y - np.average(y, weights=w)
    errors, _ = naive.ridge_leave_one_out(naive.kernel_matrix(Laplace(1.3), X, X), centered, 0.1, w)
    expected = 1 - np.average(errors**2, weights=w) / np.average(centered**2, weights=w)
    assert model.loo_score_ == pytest.approx(expected, abs=1e-8)
    _, labels = labeled(20)
    classes = RFMClassifier(Laplace(1.3), "identity", **GIVEN).fit(X, labels, sample_weight=w)
    Y = np.eye(3)[labels] - np.average(np.eye(3)[labels], axis=0, weights=w)
    misses, _ = naive.ridge_leave_one_out(naive.kernel_matrix(Laplace(1.3), X, X), Y, 0.1, w)
    right = classes.calibration_.log_probabilities(Y - misses).argmax(axis=1) == labels
    assert classes.loo_score_ == pytest.approx(np.average(right, weights=w))


def judged(model):
    """The entries of the history that were judged on left-out rows."""
    return [entry for entry in model.history_ if entry["score"] is not None]


def test_the_best_iterate_is_kept_and_the_last_if_asked():
    X, y = rows(30)
    options = {"warp": "none", "n_iter": 3, "average": False, "random_state": 0}
    free, last = (RFMRegressor("laplace", "full", iterate=i, **options).fit(X, y) for i in ("auto", "last"))
    tried = {(entry["metric"], entry["iterate"]) for entry in free.history_ if entry["score"] is None}
    assert tried == {("identity", 0), ("full", 1), ("full", 2), ("full", 3)}
    assert [(entry["metric"], entry["iterate"]) for entry in judged(last)] == [("full", 3)]
    assert last.loo_score_ == pytest.approx(1 + judged(last)[0]["score"] / y.var())
    assert {entry["rows"] for entry in free.history_} == {30}
    # The best of the steps on the rows of the screen is judged, and the identity beside it if it is not far behind.
    steps = {entry["iterate"]: entry["cost"] for entry in free.history_ if entry["score"] is None}
    chosen = [entry["iterate"] for entry in judged(free) if entry["metric"] == "full"]
    assert chosen == [min((1, 2, 3), key=steps.get)]
    assert any(free.loo_score_ == pytest.approx(1 + entry["score"] / y.var()) for entry in judged(free))


def test_bandwidth_and_ridge_are_those_of_the_smallest_error_left_out():
    X, y = rows(30)
    model = RFMRegressor("laplace", **QUICK).fit(X, y)
    Z = model.columns_.transform(X)

    def cost(bandwidth, ridge):
        K = Laplace(bandwidth).matrix(Z)
        return 0.5 * np.log((naive.ridge_leave_one_out(K, y - y.mean(), ridge, np.ones(30))[0] ** 2).mean())

    at, ridge = model.kernel_.bandwidth, model.ridge_
    for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        assert cost(at * 2 ** (i / 2), ridge * 10 ** (j / 2)) > cost(at, ridge) - 1.001 * SMALLEST_GAIN
    # The score is plain leave-one-out with the bandwidth and the ridge of the race, which are tuned coarsely.
    (entry,) = judged(model)
    assert model.loo_score_ == pytest.approx(1 - np.exp(2 * cost(entry["bandwidth"], entry["ridge"])) / y.var())
    assert cost(at, ridge) <= cost(entry["bandwidth"], entry["ridge"]) + 1e-12


@BOTH
@pytest.mark.parametrize(
    "options", [{"kernel": Laplace(1.3), "metric": "full", **GIVEN}, {"kernel": "laplace", **QUICK}]
)
def test_weights_equal_repeated_rows_and_no_weight_equals_removal(model, options):
    X, y = data_for(model, 21)
    w = np.random.default_rng(1).integers(0, 3, size=21)
    weighted = model(**options).fit(X, y, sample_weight=w)
    repeated = model(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    removed = model(**options).fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
    at = np.concatenate([X, X + 0.1])
    assert_allclose(answers(weighted, at), answers(repeated, at), atol=1e-6)
    assert_allclose(answers(weighted, at), answers(removed, at), atol=1e-10)
    assert weighted.loo_score_ == pytest.approx(repeated.loo_score_)
    assert np.abs(answers(weighted, at) - answers(model(**options).fit(X, y), at)).max() > 1e-3


def test_several_targets_share_a_metric_and_keep_their_shape():
    X, y = rows()
    model = RFMRegressor("laplace", "full", warp="none", random_state=0).fit(X, np.column_stack([y, 2 * y]))
    assert model.predict(X).shape == (40, 2)
    assert_allclose(model.predict(X)[:, 1], 2 * model.predict(X)[:, 0])
    single = RFMRegressor("laplace", "full", warp="none", random_state=0).fit(X, y)
    assert_allclose(model.predict(X)[:, 0], single.predict(X), atol=1e-6)
    assert model.gradients(X).shape == (40, 2, 3)
    assert model.contributions(X).shape == (40, 40, 2)
    assert single.gradients(X).shape == (40, 3)


@pytest.mark.parametrize("warp", ["none", "log", "rank", ["rank", "none", "log"]])
def test_gradients_equal_finite_differences_in_the_units_of_the_columns(warp):
    X, y = rows(30)
    X = np.exp(X) * np.array([1.0, 100.0, 1e-3])
    model = RFMRegressor("matern52", "full", warp=warp, n_iter=1, random_state=0).fit(X, y)
    at = 0.43 * np.sort(X, axis=0)[8:12] + 0.57 * np.sort(X, axis=0)[9:13]
    for k in range(3):
        step = 1e-6 * X[:, k].std() * (np.arange(3) == k)
        expected = (model.predict(at + step) - model.predict(at - step)) / (2 * step[k])
        assert_allclose(model.gradients(at)[:, k], expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def test_contributions_sum_to_the_prediction_beside_the_mean():
    X, y = rows()
    for n_landmarks in (None, 15):
        model = RFMRegressor("laplace", **QUICK, n_landmarks=n_landmarks).fit(X, y)
        assert_allclose(model.contributions(X).sum(axis=1) + model.center_, model.predict(X), atol=1e-8)
        assert_array_equal(X[model.row_index_], model.machines_[0].rows)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_it_finds_the_direction_that_counts(kernel):
    X = np.random.default_rng(0).normal(size=(150, 5))
    model = RFMRegressor(kernel, "full", warp="none", random_state=0).fit(X, (X[:, 0] + X[:, 1]) ** 2)
    assert model.direction_shares_[0] > 0.9
    assert_allclose(np.abs(model.directions_[0, :2]), 0.5**0.5, atol=0.05)
    assert model.feature_importances_[:2].sum() > 0.9
    assert model.loo_score_ > 0.9


@BOTH
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++"])
def test_landmarks_come_close_to_the_exact_machine(model, landmarks):
    X = np.linspace(0, 6, 60)[:, None]
    y = np.sin(X[:, 0]) if model is RFMRegressor else (np.cos(X[:, 0]) > 0).astype(int)
    exact = model("gaussian", **QUICK, ridge=1e-3).fit(X, y)
    few = model("gaussian", **QUICK, ridge=1e-3, n_landmarks=30, landmarks=landmarks).fit(X, y)
    assert len(few.row_index_) == 30
    assert_allclose(answers(few, X), answers(exact, X), atol=0.05 if model is RFMRegressor else 0.15)
    assert few.loo_score_ == pytest.approx(exact.loo_score_, abs=0.05)


@BOTH
def test_all_defaults_predict_well(model):
    X, y = data_for(model, 60)
    fitted = model(random_state=3).fit(X, y)
    fresh, truth = (labeled(90, seed=1)) if model is RFMClassifier else rows(60, seed=1)
    assert fitted.score(fresh, truth) > (0.6 if model is RFMClassifier else 0.9)
    assert abs(fitted.score(fresh, truth) - fitted.loo_score_) < 0.15


@BOTH
def test_single_precision_is_close_to_double(model):
    X, y = data_for(model)
    X = X.astype(np.float32)
    single, double = (model("laplace", **QUICK).fit(Z, y) for Z in (X, X.astype(np.float64)))
    assert_allclose(answers(single, X), answers(double, X), atol=1e-3)


# ---- classes -----------------------------------------------------------------------------------------------


def test_probabilities_are_a_softmax_of_the_outputs_and_predict_takes_the_largest():
    X, y = labeled()
    names = np.array(["low", "mid", "high"])[y]
    model = RFMClassifier("laplace", **QUICK).fit(X, names)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    outputs = model.machines_[0].mean(X)
    assert_allclose(np.log(p), log_softmax(model.calibration_.scale * outputs + model.calibration_.offsets, axis=1))
    assert_allclose(model.center_, 1 / 3)
    assert_allclose(model.contributions(X).sum(axis=1), outputs, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_better_than_an_uncalibrated_softmax_on_new_rows(classes):
    X, y = labeled(120, classes)
    model = RFMClassifier("laplace", **QUICK).fit(X, y)
    fresh, truth = labeled(600, classes, seed=1)
    loss = -np.mean(np.log(model.predict_proba(fresh)[np.arange(600), truth]))
    raw = model.machines_[0].mean(fresh) + model.center_
    assert loss < -np.mean(log_softmax(raw, axis=1)[np.arange(600), truth]) - 0.02
    assert loss < np.log(classes) - 0.1
    sure = model.predict_proba(fresh).max(axis=1)
    assert np.mean(sure) == pytest.approx(np.mean(model.predict(fresh) == truth), abs=0.08)


def test_calibration_is_on_outputs_of_rows_left_out():
    """Noise for labels: the fit knows its rows by heart, and must not be sure of others."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.integers(0, 2, size=60)
    model = RFMClassifier(Laplace(0.5), "identity", **{**GIVEN, "ridge": 1e-3}).fit(X, y)
    assert (model.machines_[0].mean(X).argmax(axis=1) == y).all()
    assert model.predict_proba(X + 0.01).max(axis=1).mean() < 0.75


def test_the_accuracy_left_out_is_that_of_refits():
    X, y = labeled(24)
    model = RFMClassifier(Laplace(1.5), "identity", **GIVEN).fit(X, y)
    Y = np.eye(3)[y] - 1 / 3
    misses, _ = naive.ridge_leave_one_out(Laplace(1.5).matrix(X), Y, 0.1, np.ones(24))
    right = model.calibration_.log_probabilities(Y - misses).argmax(axis=1) == y
    assert model.loo_score_ == pytest.approx(right.mean())
    assert 0.3 < model.loo_score_ < 1.0


# ---- bad input ---------------------------------------------------------------------------------------------


def test_a_constant_target_is_predicted_and_one_class_refused():
    X, _ = rows(20)
    assert_allclose(RFMRegressor("laplace", "full", warp="none").fit(X, np.full(20, 3.0)).predict(X), 3.0)
    assert RFMRegressor("laplace", **QUICK).fit(X, np.full(20, 3.0)).loo_score_ == 0.0
    with pytest.raises(ValueError, match="y has one class, .*'a'"):
        RFMClassifier().fit(X, np.full(20, "a"))


def test_rows_that_are_all_equal_have_the_mean_predicted():
    X, y = np.ones((6, 2)), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    with pytest.warns(DataWarning, match="all 6 rows of X are equal"):
        model = RFMRegressor("laplace", **QUICK, bandwidth=1.0).fit(X, y)
    assert_allclose(model.predict([[1.0, 1.0], [5.0, 5.0]]), 2.5, atol=1e-6)
    with pytest.warns(DataWarning, match="all 6 rows of X are equal"):
        classes = RFMClassifier("laplace", **QUICK, bandwidth=1.0).fit(X, y < 2)
    assert_allclose(classes.predict_proba([[1.0, 1.0]]), [[2 / 3, 1 / 3]], atol=0.05)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
@BOTH
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_few_rows_and_more_columns_than_rows_do(model, n):
    X = numbers(n, 6)
    y = np.arange(n) % 2 if model is RFMClassifier else numbers(n, seed=1)
    fitted = model("laplace", "full", warp="rank", random_state=0).fit(X, y)
    assert np.isfinite(answers(fitted, X)).all()


WRONG = {
    "kernel": ("rbf", "kernel='rbf' .*'gaussian'"),
    "metric": ("agop", "metric='agop' .*'ard'"),
    "warp": ("sqrt", "warp='sqrt' .*'none', 'log', 'rank'"),
    "bandwidth": (-1.0, "bandwidth=-1.0 .*above 0"),
    "ridge": (0.0, "ridge=0.0 .*above 0"),
    "n_iter": (1.5, "n_iter=1.5 "),
    "iterate": ("best", "iterate='best' .*'auto', 'last'"),
    "standardize": (1, "standardize=1 "),
    "average": ("yes", "average='yes' "),
    "shared_noise": (1.0, "shared_noise=1.0 "),
    "n_landmarks": (0, "n_landmarks=0 .*at least 1"),
    "landmarks": ("random", "landmarks='random' "),
    "time_limit": (-1, "time_limit=-1 .*above 0"),
    "working_memory": (0, "working_memory=0 "),
}


@BOTH
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named(model, name):
    value, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        model(**{"kernel": "laplace", **QUICK, name: value}).fit(*data_for(model, 12))


@BOTH
def test_callables_and_kernels_without_a_bandwidth_are_taken(model):
    X, y = data_for(model)
    for kernel in (rational, Linear(), Laplace() + Linear()):
        assert np.isfinite(answers(model(kernel, **QUICK).fit(X, y), X)).all()
    assert np.isfinite(answers(model(rational, "full", warp="none", n_iter=1).fit(X, y), X)).all()


# ---- bugs that are known -----------------------------------------------------------------------------------


def test_contributions_at_copies_of_training_rows_sum_to_the_prediction():
    X, _ = rows(40)
    model = RFMRegressor("laplace", **QUICK).fit(np.repeat(X, 2, axis=0), np.repeat(numbers(40), 2))
    assert_allclose(model.contributions(X).sum(axis=1) + model.center_, model.predict(X), atol=1e-8)


def test_a_copy_in_another_precision_is_a_copy():
    X = rows(40)[0].astype(np.float32)
    model = RFMRegressor("laplace", **QUICK).fit(np.repeat(X, 2, axis=0), np.repeat(numbers(40), 2))
    assert_allclose(model.predict(X.astype(np.float64)), model.predict(X), atol=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_class_without_weight_equals_its_removal():
    X, y = labeled(60)
    kept = y < 2
    weighted = RFMClassifier("laplace", **QUICK).fit(X, y, sample_weight=kept.astype(float))
    removed = RFMClassifier("laplace", **QUICK).fit(X[kept], y[kept])
    assert_allclose(weighted.predict_proba(X)[:, :2], removed.predict_proba(X), atol=1e-3)


# ---- averages ------------------------------------------------------------------------------------------------


def averaged():
    """A table on which smooth and rough kernels each see something."""
    X = numbers(90, 3)
    return X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.1 * numbers(90, 1, seed=4)[:, 0]


def test_the_average_of_machines_has_shares_that_sum_to_one_with_that_of_the_mean():
    X, y = averaged()
    model = RFMRegressor(warp="none", random_state=0).fit(X, y)
    shares = [machine.share for machine in model.machines_]
    assert len(shares) > 1
    assert 0.9 < sum(shares) < 1.0 + 1e-12
    assert shares == sorted(shares, reverse=True)
    assert min(shares) > 0.01
    expected = model.center_[0] + sum(m.share * m.mean(X)[:, 0] for m in model.machines_)
    assert_allclose(model.predict(X), expected, rtol=1e-12)
    assert model.kernel_ == model.machines_[0].kernel


def test_where_there_is_nothing_to_learn_predictions_are_drawn_toward_the_mean():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(80, 4)), 5.0 + random.normal(size=80)
    model = RFMRegressor("laplace", warp="none", random_state=0).fit(X, y)
    assert model.predict(random.normal(size=(200, 4))).std() < 0.4
    assert model.loo_score_ < 0.2


def test_the_average_is_at_least_as_good_left_out_as_the_best_alone():
    X, y = averaged()
    alone = RFMRegressor(warp="none", average=False, random_state=0).fit(X, y)
    assert len(alone.machines_) == 1
    assert RFMRegressor(warp="none", random_state=0).fit(X, y).loo_score_ > alone.loo_score_


def test_averaged_machines_on_landmarks_leave_the_same_rows_out(monkeypatch):
    """More rows than are sampled, some of them twice: predictions of different rows must not be put together."""
    monkeypatch.setattr("mercer.tabular_models.landmark_table.MOST_SAMPLED", 60)
    X, y = averaged()
    X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20] + 0.1])
    model = RFMRegressor(warp="none", n_landmarks=25, random_state=0).fit(X, y)
    assert len(model.machines_) > 1
    assert model.loo_score_ > 0.8
    process = GPRegressor(warp="none", n_landmarks=25, random_state=0).fit(X, y)
    assert np.isfinite(process.loo_log_density_)


# ---- length scales, honesty, importances -------------------------------------------------------------------


@BOTH
def test_length_scales_are_learned_by_evidence(model):
    X = numbers(80, 4)
    y = 2 * X[:, 1] + np.sin(2 * X[:, 2]) + 0.1 * numbers(80, seed=8)
    y = y if model is RFMRegressor else (y > 0).astype(int)
    fitted = model("gaussian", "ard", warp="none", iterate="last", random_state=0).fit(X, y)
    assert fitted.metric_.kind == "diagonal"
    assert fitted.metric_.importances()[1:3].sum() > 0.8
    assert np.trace(fitted.metric_.matrix()) == pytest.approx(4.0)


def test_the_score_left_out_is_not_better_than_that_of_new_rows():
    """The metric fits the targets of its own rows: their leave-one-out errors were some 15 % too small."""
    ratios = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = random.normal(size=(1200, 15))
        signal = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
        y = signal + 0.1 * signal.std() * random.normal(size=1200)
        model = RFMRegressor("laplace", "full", warp="none", n_iter=3, iterate="last", random_state=0)
        model.fit(X[:200], y[:200])
        left_out = np.sqrt((1 - model.loo_score_) * y[:200].var())
        ratios.append(left_out / np.sqrt(np.mean((model.predict(X[200:]) - y[200:]) ** 2)))
    assert np.mean(ratios) > 0.9


def test_importances_are_effects_and_not_slopes():
    """Rain falls on few days: the prediction is steep in it, and few predictions depend on it."""
    random = np.random.default_rng(0)
    n = 600
    A, B = np.exp(1.2 * random.normal(size=(n, 3))), random.normal(size=(n, 2))
    rain = np.where(random.uniform(size=n) < 0.96, 0.0, np.exp(random.normal(size=n) + 1))
    y = 50 * np.log(A[:, 0]) + 40 * np.tanh(B[:, 0]) + 15 * np.log(A[:, 1]) - 25 * (rain > 0)
    y = y + 30 * random.normal(size=n)
    model = RFMRegressor(random_state=0).fit(np.column_stack([A, B, rain]), y)
    A0, A1, _, B0, _, r = model.feature_importances_
    assert A0 > B0 > A1 > r


@BOTH
def test_importances_sum_to_one_and_find_the_columns_that_count(model):
    X = np.random.default_rng(0).normal(size=(80, 4))
    y = 3 * X[:, 2] if model is RFMRegressor else (X[:, 2] > 0).astype(int)
    fitted = model("laplace", **QUICK).fit(X, y)
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    assert fitted.feature_importances_[2] > 0.7
