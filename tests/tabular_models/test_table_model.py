"""Laws of all models of tables: copies, chance, failed fits, memory, leaves, and what is published after a fit."""

import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

import mercer
from mercer import GPClassifier, GPRegressor, RFMClassifier, RFMRegressor
from mercer.exceptions import ConvergenceWarning
from mercer.kernels import Kernel, Laplace
from mercer.mahalanobis import Mahalanobis
from mercer.tabular_models import learning, many_rows
from tests import naive
from tests.examples_of import labeled, numbers

MODELS = [GPRegressor, RFMRegressor, RFMClassifier]
QUICK = {"metric": "identity", "warp": "none", "random_state": 0}
models = pytest.mark.parametrize("model", MODELS)


def rows(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 5.0 + 0.1 * random.normal(size=n)


def data_for(model, n=40):
    return labeled(n) if model is RFMClassifier else rows(n)


def answers(model, X):
    """Everything that a model predicts, as one array."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return np.stack(model.predict(X, return_std=True)) if isinstance(model, GPRegressor) else model.predict(X)


# ---- copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [GPRegressor, RFMRegressor])
def test_predictions_are_continuous_at_rows_that_repeat(model):
    """The old code shared noise between copies: predictions jumped by several units at rows that had come thrice."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + random.normal(0, 0.7, 300)
    repeated, targets = np.concatenate([X, X[:60], X[:60]]), np.concatenate([y, y[:60], y[:60]])
    fitted = model(random_state=0).fit(repeated, targets)
    assert_allclose(fitted.predict(X), fitted.predict(X + 1e-7), atol=1e-4)


@models
def test_a_copy_of_a_row_pulls_the_prediction_as_a_weight_does_and_not_to_its_own_target(model):
    X, y = data_for(model, 60)
    options = {"kernel": Laplace(1.3), "bandwidth": None, "average": False, **QUICK}
    options |= {"noise": 0.5, "output_scale": 1.0} if model is GPRegressor else {"ridge": 0.5}
    w = np.where(np.arange(60) < 20, 3.0, 1.0)
    copied = model(**options).fit(np.repeat(X, w.astype(int), axis=0), np.repeat(y, w.astype(int)))
    weighted = model(**options).fit(X, y, sample_weight=w)
    assert_allclose(answers(copied, X), answers(weighted, X), atol=1e-8)
    plain = model(**options).fit(X, y)
    assert np.abs(answers(copied, X) - answers(plain, X)).max() > 1e-3


@models
@pytest.mark.parametrize("shared", [0.3, 0.9])
def test_noise_that_copies_share_makes_them_count_less(model, shared):
    """A weight v with ridge / v = shared ridge + (1 - shared) ridge / w stands for copies that share noise."""
    X, y = data_for(model, 40)
    w = np.where(np.arange(40) < 15, 4, 1)
    options = {"kernel": Laplace(1.3), "bandwidth": None, "average": False, "standardize": False, **QUICK}
    options |= {"noise": 0.5, "output_scale": 1.0} if model is GPRegressor else {"ridge": 0.5}
    copied = model(**options, shared_noise=shared).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    weighted = model(**options).fit(X, y, sample_weight=1 / (shared + (1 - shared) / w))
    # The mean of the targets, which predictions return to, is that of all rows as they came.
    assert_allclose(copied.machines_[0].weights, weighted.machines_[0].weights)
    assert_allclose(copied.center_, np.average(np.eye(3)[y] if model is RFMClassifier else y, axis=0, weights=w))
    if model is GPRegressor:
        assert_allclose(answers(copied, X)[1], answers(weighted, X)[1], atol=1e-8)


# ---- chance and failure ------------------------------------------------------------------------------------


def everything(model, X):
    """All numbers of a fitted model, to be compared bit by bit."""
    published = [model.feature_importances_, model.row_index_, model.center_, model.directions_]
    machines = [part for m in model.machines_ for part in (m.alpha, m.rows, m.share, m.ridge, m.output_scales)]
    return [answers(model, X), *published, *machines]


@models
@pytest.mark.parametrize("options", [{}, {"n_landmarks": 15}], ids=["exact", "landmarks"])
def test_the_same_random_state_gives_the_same_model_bit_by_bit(model, options):
    X, y = data_for(model)
    a, b, c = (model(warp="none", n_iter=1, random_state=seed, **options).fit(X, y) for seed in (3, 3, 4))
    for one, other in zip(everything(a, X), everything(b, X), strict=True):
        assert_array_equal(one, other)
    assert a.history_ == b.history_
    assert (answers(a, X) != answers(c, X)).any()


@models
def test_the_same_random_state_gives_the_same_leaves_bit_by_bit(few_rows, model):
    X, y = data_for(model, 120)
    a, b = (model("laplace", "full", warp="none", n_iter=1, random_state=3).fit(X, y) for _ in range(2))
    for one, other in zip(everything(a, X), everything(b, X), strict=True):
        assert_array_equal(one, other)


@models
@pytest.mark.parametrize(
    "wrong", [{"n_iter": 1.5}, {"kernel": "rbf"}, {"warp": "sqrt"}, {"n_landmarks": 0}, {"metric": "best"}]
)
def test_a_fit_that_fails_leaves_the_old_predictions_usable(model, wrong):
    X, y = data_for(model)
    fitted = model("laplace", **QUICK).fit(X, y)
    before = answers(fitted, X)
    (name,) = wrong
    other = np.array(["a", "b"])[y % 2] if model is RFMClassifier else np.column_stack([y, y, y])
    fitted.set_params(**wrong)
    with pytest.raises(ValueError, match=f"{name}="):
        fitted.fit(X[::-1], other[::-1])
    assert_array_equal(answers(fitted, X), before)


@models
def test_a_fit_that_fails_on_other_columns_leaves_the_old_predictions_usable(model):
    X, y = data_for(model)
    fitted = model("laplace", **QUICK).fit(X, y)
    before = answers(fitted, X)
    with pytest.raises(ValueError, match="n_iter=1.5"):
        fitted.set_params(n_iter=1.5).fit(X[:, :2], y)
    assert_array_equal(answers(fitted, X), before)


@models
def test_nothing_is_written_into_the_arguments(model):
    X, y = data_for(model)
    w = np.linspace(0.5, 2.0, 40)
    copies = X.copy(), y.copy(), w.copy()
    model("laplace", "full", warp="log", n_iter=1, random_state=0).fit(X, y, sample_weight=w).predict(X)
    for argument, copy in zip((X, y, w), copies, strict=True):
        assert_array_equal(argument, copy)


@models
def test_a_time_limit_warns_and_predicts(model):
    X, y = data_for(model)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0.001 s was reached"):
        fitted = model(time_limit=1e-3, random_state=0).fit(X, y)
    assert np.isfinite(answers(fitted, X)).all()
    assert len(fitted.history_) < 5


# ---- memory ------------------------------------------------------------------------------------------------


def arrays_of(value, seen):
    """All arrays and tensors that can be reached from a value, each once."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, (np.ndarray, torch.Tensor)):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_of(part, seen)
    elif isinstance(value, (list, tuple, set)):
        for part in value:
            yield from arrays_of(part, seen)
    elif isinstance(value, (BaseEstimator, Kernel, Mahalanobis)) or type(value).__module__.startswith("mercer"):
        yield from arrays_of(getattr(value, "__dict__", {}), seen)
        for name in getattr(type(value), "__slots__", ()):
            yield from arrays_of(getattr(value, name), seen)


def size_of(fitted):
    """The bytes of all arrays of a model."""
    return sum(array.nbytes for array in arrays_of(vars(fitted), {}))


@models
@pytest.mark.parametrize("leaves", [False, True], ids=["one piece", "leaves"])
def test_a_model_holds_nothing_of_the_size_of_the_kernel_matrix(model, leaves, request):
    if leaves:
        request.getfixturevalue("few_rows")
    n = 300
    X, y = data_for(model, n)
    fitted = model("laplace", "diagonal", warp="none", n_iter=1, random_state=0).fit(X, y)
    assert (fitted.machines_[0].leaves is not None) is leaves
    outputs = fitted.machines_[0].alpha.shape[1]
    # Each machine has the warped rows and coefficients; beside them stand the rows, leaves, warps and history.
    most = 8 * n * (len(fitted.machines_) * (3 + outputs + 4) + 40)
    assert 8 * n * 3 < size_of(fitted) < most < 8 * n**2


@models
@pytest.mark.parametrize("leaves", [False, True], ids=["one piece", "leaves"])
def test_what_is_worked_out_for_predictions_is_not_saved(model, leaves, request):
    if leaves:
        request.getfixturevalue("few_rows")
    X, y = data_for(model, 150)
    fitted = model("matern32", **QUICK).fit(X, y)
    before = answers(fitted, X)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(answers(again, X), before)
    assert len(pickle.dumps(fitted)) < 8 * 150 * 20 + 20_000


@models
@pytest.mark.parametrize("kind", ["one piece", "leaves", "landmarks"])
def test_files_are_small_and_give_the_same_answers(model, kind, request, tmp_path):
    """A file holds rows and coefficients; of landmarks with variances, a triangle in single precision as well."""
    if kind == "leaves":
        request.getfixturevalue("few_rows")
    n, m = 300, 120
    X, y = data_for(model, n)
    options = {"n_landmarks": m} if kind == "landmarks" else {}
    fitted = model("matern32", **options, **QUICK).fit(X, y)
    before = answers(fitted, X)
    mercer.save(fitted, tmp_path / "model.mercer")
    assert_array_equal(answers(mercer.load(tmp_path / "model.mercer"), X), before)
    triangle = 4 * m * (m + 1) // 2 if kind == "landmarks" and model is GPRegressor else 0
    size = (tmp_path / "model.mercer").stat().st_size
    # Beside rows, coefficients, leaves and their positions stand some thousand bytes of settings and history.
    assert triangle < size < triangle + 8 * n * 20 + 20_000 < 8 * n**2


# ---- leaves ------------------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_with_leaves_are_those_of_machines_solved_by_hand_in_each(few_rows, model, weighted):
    X, y = data_for(model, 160)
    w = np.linspace(0.5, 3.0, 160) if weighted else np.ones(160)
    fitted = model("laplace", "full", warp="none", n_iter=1, random_state=0).fit(X, y, sample_weight=w)
    targets = np.eye(3)[y] if model is RFMClassifier else y[:, None]
    assert_allclose(fitted.center_, np.average(targets, axis=0, weights=w))
    at = np.random.default_rng(5).normal(size=(40, 3))
    total = np.zeros((40, targets.shape[1]))
    for machine in fitted.machines_:
        assert machine.partition.n_leaves > 3
        # A row is in the leaf in which the model keeps it, which may be no other than the one a walk finds.
        place = {row.tobytes(): leaf for row, leaf in zip(machine.rows, machine.leaves, strict=True)}
        own, asked = np.array([place[row.tobytes()] for row in X]), machine.partition.leaves_of(at)
        Z, x = machine.columns.transform(X), machine.columns.transform(at)
        for leaf in np.unique(asked):
            i, j = asked == leaf, own == leaf
            A = naive.kernel_matrix(machine.kernel, Z[j], Z[j]) + np.diag(machine.ridge / w[j])
            alpha = np.linalg.solve(A, targets[j] - fitted.center_)
            total[i] += machine.share * naive.kernel_matrix(machine.kernel, x[i], Z[j]) @ alpha
    if model is RFMClassifier:
        assert_allclose(np.log(fitted.predict_proba(at)), fitted.calibration_.log_probabilities(total), atol=1e-8)
    else:
        assert_allclose(fitted.predict(at), fitted.center_ + total[:, 0], atol=1e-8)


@models
def test_leaves_predict_about_as_well_as_one_machine(few_rows, model, monkeypatch):
    X, y = data_for(model, 300)
    fresh, truth = labeled(300, seed=1) if model is RFMClassifier else rows(300, seed=1)
    options = {"warp": "none", "n_iter": 1, "random_state": 0}
    cut = model("matern32", "full", **options).fit(X, y)
    whole = model("matern32", "full", n_landmarks=None, **options).fit(X, y)
    assert cut.machines_[0].leaves is not None
    assert whole.machines_[0].leaves is None
    assert cut.score(fresh, truth) > whole.score(fresh, truth) - 0.15


@models
def test_gradients_and_contributions_of_leaves_belong_to_the_predictions(few_rows, model):
    X, y = data_for(model, 120)
    fitted = model("matern32", "full", warp="log", n_iter=1, random_state=0).fit(X, y)
    at = np.random.default_rng(5).normal(size=(6, 3))

    def outputs(x):
        return sum(m.share * m.mean(x) for m in fitted.machines_)

    parts = fitted.contributions(at)
    parts = parts if model is RFMClassifier else parts[:, :, None]
    assert parts.shape[1] == len(fitted.row_index_) == 120
    assert_allclose(parts.sum(axis=1), outputs(at), atol=1e-8)
    slopes = fitted.gradients(at)
    slopes = slopes if model is RFMClassifier else slopes[:, None]
    for k in range(3):
        step = 1e-6 * (np.arange(3) == k)
        expected = (outputs(at + step) - outputs(at - step)) / 2e-6
        assert_allclose(slopes[:, :, k], expected, rtol=1e-3, atol=1e-5)


@models
def test_as_many_landmarks_as_rows_are_one_machine_of_all_rows(few_rows, model):
    X, y = data_for(model, 120)
    fitted = model(Laplace(1.3), bandwidth=None, n_landmarks=120, **QUICK).fit(X, y)
    assert fitted.machines_[0].leaves is None
    assert learning.MOST_EXACT_ROWS < 120


def test_when_time_is_up_leaves_are_solved_once(few_rows):
    X, y = data_for(RFMRegressor, 120)
    assert len(RFMRegressor("laplace", **QUICK).fit(X, y).machines_) == many_rows.PARTITIONS
    with pytest.warns(ConvergenceWarning, match="was reached"):
        assert len(RFMRegressor("laplace", **QUICK, time_limit=1e-9).fit(X, y).machines_) == 1


# ---- what is published -------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("n_landmarks", [None, 12])
def test_rows_of_machines_are_rows_of_the_table_as_it_came(model, n_landmarks):
    """Rows of no weight are no rows of any machine, and the numbers of the others count them nevertheless."""
    X, y = data_for(model)
    w = (np.arange(40) % 5 > 0).astype(float)
    fitted = model("laplace", **QUICK, n_landmarks=n_landmarks, landmarks="kmeans++").fit(X, y, sample_weight=w)
    assert len(fitted.machines_) == len(fitted.machine_rows_)
    for machine, place in zip(fitted.machines_, fitted.machine_rows_, strict=True):
        assert_array_equal(X[fitted.row_index_[place]], machine.rows)
    assert (w[fitted.row_index_] > 0).all()
    if n_landmarks is None:
        assert_array_equal(np.sort(fitted.row_index_), np.flatnonzero(w))


@models
def test_what_is_published_is_of_the_machine_with_the_largest_share(model):
    X, y = data_for(model, 60)
    fitted = model(warp="none", n_iter=1, random_state=0).fit(X, y)
    leader = max(fitted.machines_, key=lambda machine: machine.share)
    assert fitted.machines_[0] is leader
    assert (fitted.kernel_, fitted.ridge_) == (leader.kernel, leader.ridge)
    assert fitted.columns_ is leader.columns
    assert fitted.metric_ == leader.kernel.common_metric()
    assert_allclose(fitted.feature_importances_.sum(), 1.0)
    assert_allclose(fitted.direction_shares_.sum(), 1.0)
    assert set(fitted.history_[0]) == {
        "kernel",
        "warp",
        "metric",
        "iterate",
        "bandwidth",
        "ridge",
        "cost",
        "score",
        "rows",
    }


@models
@pytest.mark.parametrize("metric", ["ard", "diagonal", "full"])
def test_what_is_given_is_kept_under_every_metric(model, metric):
    X, y = data_for(model)
    given = {"noise": 0.3, "output_scale": 2.0} if model is GPRegressor else {"ridge": 0.15}
    fitted = model("gaussian", metric, warp="none", n_iter=1, iterate="last", random_state=0, **given).fit(X, y)
    assert fitted.ridge_ == pytest.approx(0.15)
    assert fitted.kernel_.metric is not None


@models
def test_no_steps_and_the_last_iterate_are_the_identity(model):
    X, y = data_for(model)
    options = {"kernel": Laplace(1.3), "warp": "none", "bandwidth": None, "random_state": 0}
    none = model(metric="full", n_iter=0, iterate="last", **options).fit(X, y)
    assert_allclose(answers(none, X), answers(model(metric="identity", **options).fit(X, y), X))


@models
def test_a_kernel_that_comes_with_a_full_metric_may_learn_length_scales(model):
    X, y = data_for(model)
    kernel = Laplace(1.3, metric=Mahalanobis(numbers(3, 2)))
    assert np.isfinite(answers(model(kernel, "ard", warp="none", random_state=0).fit(X, y), X)).all()


@pytest.mark.parametrize("model", [*MODELS, GPClassifier])
def test_threads_side_by_side_change_nothing(model):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    y = (y > 0.5).astype(int) if "Classifier" in model.__name__ else y
    alone = model(random_state=0).fit(X, y)
    beside = model(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.predict(X), beside.predict(X))
    assert [entry["score"] for entry in alone.history_] == [entry["score"] for entry in beside.history_]
    with pytest.raises(ValueError, match="n_jobs=0"):
        model(n_jobs=0).fit(X, y)
