"""GPRegressor against the formula, scikit-learn and differences; weights, bad input, and what it learns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mercer import GPRegressor
from mercer.exceptions import DataWarning
from mercer.kernels import Custom, Gaussian, Laplace, Linear, ProductLaplace
from mercer.tabular_models.predictive import Predictive, log_bell
from mercer.tabular_models.tuning import SMALLEST_GAIN
from tests import naive
from tests.examples_of import numbers, rational

QUICK = {"metric": "identity", "warp": "none", "random_state": 0}
GIVEN = {**QUICK, "bandwidth": None, "noise": 0.1, "output_scale": 2.0, "standardize": False, "average": False}


def rows(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 5.0 + 0.1 * random.normal(size=n)


# ---- given parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(0.9), ProductLaplace(1.2), Gaussian(1.0) + Linear()])
def test_given_parameters_give_the_posterior_of_the_formula(kernel):
    X, y = rows(25)
    at = np.concatenate([numbers(4, 3, seed=5), X[:2]])
    model = GPRegressor(kernel, **GIVEN).fit(X, y)
    A = 2.0 * naive.kernel_matrix(kernel, X, X) + 0.1 * np.eye(25)
    K = 2.0 * naive.kernel_matrix(kernel, at, X)
    covariance = 2.0 * naive.kernel_matrix(kernel, at, at) - K @ np.linalg.solve(A, K.T) + 0.1 * np.eye(6)
    mean, found = model.predict(at, return_cov=True)
    assert_allclose(mean, y.mean() + K @ np.linalg.solve(A, y - y.mean()), atol=1e-8)
    assert_allclose(found, covariance, atol=1e-8)
    assert_allclose(model.predict(at, return_std=True)[1], np.sqrt(covariance.diagonal()), atol=1e-8)
    assert (model.noise_, model.output_scale_, model.kernel_) == (pytest.approx(0.1), 2.0, kernel)


def test_it_agrees_with_scikit_learn():
    X, y = rows(25)
    y = y - y.mean()
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y)
    peer = GaussianProcessRegressor(ConstantKernel(2.0) * RBF(1.3), alpha=0.1, optimizer=None).fit(X, y)
    at = numbers(6, 3, seed=5)
    mean, std = peer.predict(at, return_std=True)
    assert_allclose(model.predict(at), mean, atol=1e-8)
    assert_allclose(model.predict(at, return_std=True)[1], np.sqrt(std**2 + 0.1), atol=1e-8)
    # at the output scale of largest evidence, which is the one that log_marginal_likelihood_ is at
    learned = GPRegressor("gaussian", criterion="evidence", calibrate=False, **QUICK).fit(X, y)
    kernel = ConstantKernel(learned.output_scale_) * RBF(learned.kernel_.bandwidth)
    Z = learned.columns_.transform(X)
    peer = GaussianProcessRegressor(kernel, alpha=learned.noise_, optimizer=None).fit(Z, y)
    assert learned.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-6)
    for factor in (10**0.5, 10**-0.5):
        nearby = GaussianProcessRegressor(kernel, alpha=factor * learned.noise_, optimizer=None).fit(Z, y)
        assert nearby.log_marginal_likelihood_value_ < peer.log_marginal_likelihood_value_ + 25 * SMALLEST_GAIN


def test_calibration_takes_the_scale_of_rows_left_out():
    X, y = rows()
    own, calibrated = (GPRegressor("laplace", calibrate=c, **QUICK).fit(X, y) for c in (False, True))
    assert own.ridge_ == calibrated.ridge_
    assert_allclose(own.predict(X), calibrated.predict(X))
    assert own.output_scale_ != pytest.approx(calibrated.output_scale_, rel=1e-3)


# ---- weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [GIVEN, {**QUICK, "warp": "log"}, {**QUICK, "metric": "diagonal", "n_iter": 1}])
def test_weights_equal_repeated_rows_and_no_weight_equals_removal(options):
    X, y = rows(20)
    w = np.random.default_rng(1).integers(0, 3, size=20)
    model = GPRegressor(Gaussian(1.3), **options).fit(X, y, sample_weight=w)
    repeated = GPRegressor(Gaussian(1.3), **options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    for a, b in zip(model.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, rtol=1e-5)
    removed = GPRegressor(Gaussian(1.3), **options).fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
    assert_allclose(model.predict(X), removed.predict(X))
    assert_array_equal(np.sort(model.row_index_), np.flatnonzero(w > 0))
    plain = GPRegressor(Gaussian(1.3), **options).fit(X, y)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 1e-3


def test_the_mean_of_repeated_measurements_is_what_is_fitted():
    X, y = rows(15)
    at = numbers(4, 3, seed=5)
    noisy = np.concatenate([y + 0.4, y - 0.4])
    twice = GPRegressor(Gaussian(1.3), **GIVEN).fit(np.tile(X, (2, 1)), noisy)
    A = 2.0 * naive.kernel_matrix(Gaussian(1.3), np.tile(X, (2, 1)), np.tile(X, (2, 1))) + 0.1 * np.eye(30)
    K = 2.0 * naive.kernel_matrix(Gaussian(1.3), at, np.tile(X, (2, 1)))
    mean, covariance = twice.predict(at, return_cov=True)
    assert_allclose(mean, y.mean() + K @ np.linalg.solve(A, noisy - y.mean()), atol=1e-7)
    prior = 2.0 * naive.kernel_matrix(Gaussian(1.3), at, at) + 0.1 * np.eye(4)
    assert_allclose(covariance, prior - K @ np.linalg.solve(A, K.T), atol=1e-7)


@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_repeated_measurements_are_those_of_the_system_of_all_rows(shared):
    """Noise is shared between measurements of one row, but for a part that each has for itself."""
    X, y = np.repeat(rows(12)[0], [1, 2, 3] * 4, axis=0), numbers(24)
    model = GPRegressor(Gaussian(1.3), **GIVEN, shared_noise=shared).fit(X, y)
    same = (X[:, None] == X[None]).all(axis=2)
    noise = 0.1 * (shared * same + (1 - shared) * np.eye(24))
    at = numbers(4, 3, seed=5)
    A, K = 2.0 * Gaussian(1.3).matrix(X) + noise, 2.0 * Gaussian(1.3).matrix(at, X)
    mean, covariance = model.predict(at, return_cov=True)
    assert_allclose(mean, y.mean() + K @ np.linalg.solve(A, y - y.mean()), atol=1e-7)
    prior = 2.0 * Gaussian(1.3).matrix(at) + 0.1 * np.eye(4)
    assert_allclose(covariance, prior - K @ np.linalg.solve(A, K.T), atol=1e-7)


# ---- what can be asked -------------------------------------------------------------------------------------


def averaged(y_of=lambda X, y: y, **options):
    """A model of two machines, whatever the search would make of the table."""
    X, y = rows(40)
    X = np.exp(X)
    options = {"warp": "log", "metric": "identity", "random_state": 0, **options}
    model, other = (GPRegressor(kernel, **options).fit(X, y_of(X, y)) for kernel in ("gaussian", "laplace"))
    model.machines_ = [model.machines_[0].changed(share=0.6), other.machines_[0].changed(share=0.4)]
    model.machine_rows_ = model.machine_rows_ * 2
    return model, X, y


def test_shares_of_an_average_sum_to_one():
    X, y = rows(40)
    model = GPRegressor(warp="none", n_iter=1, random_state=0).fit(X, y)
    shares = [machine.share for machine in model.machines_]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)


def test_several_machines_keep_the_laws_of_a_mixture():
    model, X, _ = averaged()
    at = np.concatenate([np.exp(numbers(4, 3, seed=5)), X[:2]])
    mean, covariance = model.predict(at, return_cov=True)
    assert_allclose(model.predict(at, return_std=True)[1], np.sqrt(covariance.diagonal()), rtol=1e-9)
    samples = model.sample_y(at, 20_000, random_state=1)
    assert samples.shape == (6, 20_000)
    size = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    assert_allclose(samples.mean(axis=1), mean, atol=0.04 * np.sqrt(covariance.diagonal().max()))
    assert_allclose(np.cov(samples) / size, covariance / size, atol=0.05)
    grid = np.linspace(mean[0] - 4, mean[0] + 4, 2001)
    density = np.exp(model.log_density(np.repeat(at[:1], 2001, axis=0), grid))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(grid * density, grid) == pytest.approx(mean[0], abs=1e-3)
    assert np.trapezoid((grid - mean[0]) ** 2 * density, grid) == pytest.approx(covariance[0, 0], rel=1e-2)


def test_one_machine_is_normal():
    X, y = rows(25)
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y)
    mean, std = model.predict(X + 0.3, return_std=True)
    assert_allclose(model.log_density(X + 0.3, y), norm.logpdf(y, mean, std))
    assert_array_equal(model.sample_y(X, 3, random_state=5), model.sample_y(X, 3, random_state=5))


def test_left_out_density_is_that_of_refits():
    X, y = rows(12)
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y)
    K = naive.kernel_matrix(Gaussian(1.3), X, X)
    misses, variances = naive.ridge_leave_one_out(K, y - y.mean(), 0.05, np.ones(12))
    densities = norm.logpdf(misses, 0.0, np.sqrt(2.0 * variances))
    assert model.loo_log_density_ == pytest.approx(densities.mean())


def test_left_out_density_is_weighted():
    X, y = rows(12)
    w = np.where(np.arange(12) < 6, 0.2, 4.0)
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y, sample_weight=w)
    K, centered = naive.kernel_matrix(Gaussian(1.3), X, X), y - np.average(y, weights=w)
    misses, variances = naive.ridge_leave_one_out(K, centered, 0.05, w)
    densities = norm.logpdf(misses, 0.0, np.sqrt(2.0 * variances))
    assert model.loo_log_density_ == pytest.approx(np.average(densities, weights=w))


def test_left_out_density_has_the_errors_of_the_race_and_the_variances_of_the_machine_that_is_kept():
    X, y = rows(12)
    model = GPRegressor(Gaussian(1.3), **{**QUICK, "standardize": False, "bandwidth": None}).fit(X, y)
    (entry,) = (entry for entry in model.history_ if entry["score"] is not None)
    K, centered = naive.kernel_matrix(Gaussian(1.3), X, X), y - y.mean()
    misses, _ = naive.ridge_leave_one_out(K, centered, entry["ridge"], np.ones(12))
    _, variances = naive.ridge_leave_one_out(K, centered, model.ridge_, np.ones(12))
    assert model.output_scale_ == pytest.approx(np.mean(misses**2 / variances))
    raw = Predictive(np.ones(1), np.zeros((1, 12, 1)), np.sqrt(model.output_scale_ * variances)[None, :, None], None)
    densities = model.spread_.corrected(raw).log_densities(misses[:, None])
    assert model.loo_log_density_ == pytest.approx(densities.mean())


@pytest.mark.parametrize("several", [False, True])
def test_several_targets_have_their_own_scales(several):
    model, X, y = averaged(lambda X, y: np.column_stack([y, 10 * y + X[:, 2]]))
    if not several:
        model.machines_ = [model.machines_[0].changed(share=1.0)]
    at = X[:5] * 1.1
    mean, std = model.predict(at, return_std=True)
    _, covariance = model.predict(at, return_cov=True)
    assert mean.shape == std.shape == (5, 2)
    assert covariance.shape == (5, 5, 2)
    assert_allclose(std**2, np.einsum("iic->ic", covariance))
    assert model.noise_.shape == model.output_scale_.shape == (2,)
    assert model.sample_y(at, 3).shape == (5, 2, 3)
    assert model.gradients(at).shape == (5, 2, 3)
    assert model.output_scale_[1] > 20 * model.output_scale_[0]
    if not several:
        expected = log_bell(np.zeros((5, 2)), model.spread_.tails) - np.log(std)
        assert_allclose(model.log_density(at, mean), expected.sum(axis=1))
    options = {"warp": "log", "kernel": "laplace", "metric": "identity", "random_state": 0}
    one = GPRegressor(**options).fit(X, np.column_stack([y, y]))
    assert_allclose(one.predict(at)[:, 0], GPRegressor(**options).fit(X, y).predict(at))


@pytest.mark.parametrize("kernel", ["gaussian", "product_matern32"])
@pytest.mark.parametrize("warp", ["none", "log", "rank"])
def test_gradients_equal_finite_differences_in_the_units_of_the_columns(warp, kernel):
    X, y = rows(30)
    X = np.exp(X) * np.array([1.0, 100.0, 1e-3])
    # Without noise the coefficients are large, and differences of predictions lose their digits.
    options = {**QUICK, "warp": warp, "metric": "diagonal", "n_iter": 1, "noise_floor": 1e-5}
    model = GPRegressor(kernel, **options).fit(X, y)
    at = 0.43 * np.sort(X, axis=0)[8:12] + 0.57 * np.sort(X, axis=0)[9:13]
    for k in range(3):
        step = 1e-6 * X[:, k].std() * (np.arange(3) == k)
        expected = (model.predict(at + step) - model.predict(at - step)) / (2 * step[k])
        assert_allclose(model.gradients(at)[:, k], expected, rtol=1e-2, atol=1e-5 * np.abs(expected).max())


def test_contributions_sum_to_the_prediction_beside_the_mean():
    model, _, _ = averaged()
    at = np.exp(numbers(4, 3, seed=5))
    parts = model.contributions(at)
    assert parts.shape == (4, len(model.row_index_))
    assert_allclose(parts.sum(axis=1) + model.center_, model.predict(at), atol=1e-8)
    assert_array_equal(np.sort(model.row_index_), np.arange(40))


@pytest.mark.parametrize("given", [True, False], ids=["given", "learned"])
def test_quantiles_intervals_and_densities_are_of_one_distribution(given):
    X, y = rows(25)
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y) if given else averaged()[0]
    at = np.exp(numbers(4, 3, seed=5))
    median, interval = model.predict_quantiles(at, 0.5), model.predict_interval(at, 0.8)
    assert median.shape == (4,)
    assert interval.shape == (4, 2)
    assert_allclose(interval, model.predict_quantiles(at, [0.1, 0.9]))
    for i in range(4):
        grid = np.linspace(*interval[i], 2001)
        density = np.exp(model.log_density(np.repeat(at[i : i + 1], 2001, axis=0), grid))
        assert np.trapezoid(density, grid) == pytest.approx(0.8, abs=1e-4)
    if given:
        mean, std = model.predict(at, return_std=True)
        assert_allclose(interval, np.stack([norm.ppf(q, mean, std) for q in (0.1, 0.9)], axis=1))


def test_the_function_is_known_better_than_an_observation_by_the_noise():
    X, y = rows(25)
    at = numbers(4, 3, seed=5)
    model = GPRegressor(Gaussian(1.3), **GIVEN).fit(X, y)
    assert_allclose(model.latent_std(at) ** 2 + 0.1, model.predict(at, return_std=True)[1] ** 2)
    learned, _, _ = averaged()
    assert (learned.latent_std(np.exp(at)) < learned.predict(np.exp(at), return_std=True)[1]).all()


def test_several_targets_have_quantiles_each():
    model, X, _ = averaged(lambda X, y: np.column_stack([y, 10 * y + X[:, 2]]))
    assert model.predict_quantiles(X[:5], 0.3).shape == model.latent_std(X[:5]).shape == (5, 2)
    interval = model.predict_interval(X[:5])
    assert interval.shape == (5, 2, 2)
    assert_allclose(interval[:, 1, 0], model.predict_quantiles(X[:5], 0.05)[:, 1])


def test_intervals_of_heavy_tailed_targets_hold_new_rows_as_often_as_they_say():
    inside, heavy = [], 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        X = random.normal(size=(1200, 2))
        y = np.sin(2 * X[:, 0]) + 0.3 * random.standard_t(3, size=1200)
        model = GPRegressor("gaussian", **QUICK).fit(X[:200], y[:200])
        lower, upper = model.predict_interval(X[200:]).T
        inside.append(np.mean((lower < y[200:]) & (y[200:] < upper)))
        heavy += model.spread_.tails[0] < 10
    assert np.mean(inside) == pytest.approx(0.9, abs=0.025)
    assert heavy >= 4


# ---- what it learns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["full", "ard", "diagonal"])
def test_it_finds_the_directions_that_count(metric):
    X = np.random.default_rng(0).normal(size=(150, 5))
    y = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.1 * numbers(150, seed=1)
    model = GPRegressor("gaussian", metric, warp="none", random_state=0).fit(X, y)
    assert model.feature_importances_[:2].sum() > 0.9
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    if metric == "full":
        assert_allclose(np.abs(model.directions_[0, :2]), 0.5**0.5, atol=0.1)
        assert model.direction_shares_[0] > 0.9
    plain = GPRegressor("gaussian", **QUICK).fit(X, y)
    assert model.loo_log_density_ > plain.loo_log_density_ + 0.2


def test_history_has_every_iterate():
    X, y = rows()
    model = GPRegressor("gaussian", "full", warp="none", n_iter=2, iterate="last", random_state=0).fit(X, y)
    tried = {(entry["metric"], entry["iterate"]) for entry in model.history_ if entry["score"] is None}
    assert tried == {("full", 2)}
    (judged,) = (entry for entry in model.history_ if entry["score"] is not None)
    assert (judged["metric"], judged["iterate"], judged["rows"]) == ("full", 2, 40)
    free = GPRegressor("gaussian", "full", warp="none", n_iter=2, random_state=0).fit(X, y)
    tried = {(entry["metric"], entry["iterate"]) for entry in free.history_ if entry["score"] is None}
    assert tried == {("identity", 0), ("full", 1), ("full", 2)}


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++"])
def test_landmarks_come_close_to_the_exact_process(landmarks):
    X = np.linspace(0, 6, 60)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * numbers(60)
    given = {**QUICK, "bandwidth": 0.6, "noise": 0.01, "output_scale": 1.0}
    exact = GPRegressor("gaussian", **given).fit(X, y)
    few = GPRegressor("gaussian", n_landmarks=25, landmarks=landmarks, **given).fit(X, y)
    for a, b in zip(few.predict(X, return_std=True), exact.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, atol=0.02)
    assert len(few.row_index_) == 25
    assert_array_equal(few.machines_[0].rows, X[few.row_index_])
    assert few.contributions(X).shape == (60, 25)
    assert_allclose(few.contributions(X).sum(axis=1) + few.center_, few.predict(X))
    assert few.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=1.0)
    assert few.loo_log_density_ == pytest.approx(exact.loo_log_density_, abs=0.05)


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_standard_deviations_are_as_large_as_errors_on_new_rows(n_landmarks):
    """On landmarks the ridge is chosen anew, and the output scale must be the one that belongs to it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.normal(size=500)
    model = GPRegressor("gaussian", n_landmarks=n_landmarks, **QUICK).fit(X[:200], y[:200])
    mean, std = model.predict(X[200:], return_std=True)
    assert np.sqrt(np.mean(((y[200:] - mean) / std) ** 2)) == pytest.approx(1.0, abs=0.15)
    assert np.sqrt(model.noise_) == pytest.approx(0.5, rel=0.2)


def test_single_precision_is_close_to_double():
    X, y = rows(30)
    X = X.astype(np.float32)
    single, double = (GPRegressor("laplace", **QUICK).fit(Z, y) for Z in (X, X.astype(np.float64)))
    for a, b in zip(single.predict(X, return_std=True), double.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, atol=1e-3)


def test_all_defaults_predict_well():
    X, y = rows(60)
    model = GPRegressor(random_state=3).fit(X, y)
    fresh, truth = rows(60, seed=1)
    mean, std = model.predict(fresh, return_std=True)
    assert np.mean((mean - truth) ** 2) < 0.1 * truth.var()
    assert 0.8 < np.mean(np.abs(truth - mean) < 1.96 * std) <= 1.0


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_constant_target_is_predicted(outputs):
    X, _ = rows(20)
    y = np.full((20, outputs), 3.0)
    model = GPRegressor("gaussian", **QUICK).fit(X, y if outputs > 1 else y[:, 0])
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, 3.0)
    assert (std < 1e-3).all()


def test_rows_that_are_all_equal_have_the_mean_predicted():
    with pytest.warns(DataWarning, match="all 6 rows of X are equal"):
        model = GPRegressor("gaussian", **QUICK, bandwidth=1.0).fit(np.ones((6, 2)), np.arange(6.0))
    assert_allclose(model.predict([[1.0, 1.0], [5.0, 5.0]])[1:], 2.5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_few_rows_and_more_columns_than_rows_do(n):
    X, y = numbers(n, 6), numbers(n, seed=1)
    for options in ({"metric": "full"}, {"metric": "ard"}):
        model = GPRegressor("laplace", warp="rank", random_state=0, **options).fit(X, y)
        assert np.isfinite(model.predict(X, return_std=True)).all()


def test_a_target_without_noise_is_pointed_out():
    X, _ = rows()
    with pytest.warns(DataWarning, match="noise_floor=1e-08"):
        GPRegressor("gaussian", **QUICK).fit(X, X[:, 0])


WRONG = {
    "kernel": ("rbf", "kernel='rbf' .*'gaussian'"),
    "metric": ("agop", "metric='agop' .*'ard'"),
    "warp": ("sqrt", "warp='sqrt' .*'none', 'log', 'rank'"),
    "bandwidth": (-1.0, "bandwidth=-1.0 .*above 0"),
    "noise": (0.1, "noise=0.1 .*output_scale='auto'"),
    "output_scale": (-2.0, "output_scale=-2.0 .*above 0"),
    "noise_floor": (0.0, "noise_floor=0.0 "),
    "target_warp": ("sqrt", "target_warp='sqrt' .*'yeo-johnson'"),
    "criterion": ("likelihood", "criterion='likelihood' .*'left_out', 'evidence'"),
    "calibrate": ("yes", "calibrate='yes' "),
    "n_iter": (-1, "n_iter=-1 "),
    "iterate": ("best", "iterate='best' .*'auto', 'last'"),
    "average": (1, "average=1 "),
    "shared_noise": (-0.1, "shared_noise=-0.1 "),
    "standardize": ("yes", "standardize='yes' "),
    "n_landmarks": (0, "n_landmarks=0 .*at least 1"),
    "landmarks": ("random", "landmarks='random' "),
    "interval_folds": (1, "interval_folds=1 .*at least 2"),
    "time_limit": (-1, "time_limit=-1 .*above 0"),
    "working_memory": (0, "working_memory=0 "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named(name):
    value, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        GPRegressor(**{"kernel": "gaussian", **QUICK, name: value}).fit(*rows(10))


def test_other_errors_say_what_is_wrong():
    X, y = rows(10)
    with pytest.raises(ValueError, match="bandwidth='wide' .*'median', 'auto' or None"):
        GPRegressor(bandwidth="wide").fit(X, y)
    with pytest.raises(ValueError, match="[Ss]ample.weight"):
        GPRegressor("gaussian", **QUICK).fit(X, y, sample_weight=np.zeros(10))
    with pytest.raises(ValueError, match="return_cov=True .*return_std"):
        GPRegressor("gaussian", **QUICK).fit(X, y).predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="coverage=1.0 .*below 1"):
        GPRegressor("gaussian", **QUICK).fit(X, y).predict_interval(X, 1.0)
    with pytest.raises(ValueError, match="q=-0.1 .*above 0"):
        GPRegressor("gaussian", **QUICK).fit(X, y).predict_quantiles(X, [0.5, -0.1])


# ---- bugs that are known -----------------------------------------------------------------------------------


def test_a_constant_target_is_not_said_to_be_without_noise():
    GPRegressor("gaussian", **QUICK).fit(rows(20)[0], np.full(20, 3.0))


def test_given_parameters_are_kept_with_landmarks():
    X, y = rows(30)
    model = GPRegressor(Gaussian(1.3), **GIVEN, n_landmarks=29).fit(X, y)
    assert (model.noise_, model.output_scale_) == (pytest.approx(0.1), 2.0)


def test_a_warp_a_column_is_taken():
    X, y = rows(30)
    model = GPRegressor("gaussian", "identity", warp=["log", "none", "rank"]).fit(X, y)
    assert model.columns_.warps_ == ["log", "none", "rank"]


def test_a_callable_kernel_is_taken():
    X, y = rows(30)
    assert GPRegressor(rational, **QUICK).fit(X, y).kernel_ == Custom(rational)


def test_the_evidence_of_given_parameters_is_that_of_scikit_learn():
    X, y = rows(25)
    model = GPRegressor(Gaussian(1.3), **GIVEN, calibrate=False).fit(X, y - y.mean())
    peer = GaussianProcessRegressor(ConstantKernel(2.0) * RBF(1.3), alpha=0.1, optimizer=None).fit(X, y - y.mean())
    assert model.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-6)


def test_the_evidence_of_several_targets_is_a_sum_with_landmarks_too():
    X = np.linspace(0, 6, 60)[:, None]
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])]) + 0.1 * numbers(60, 2)
    given = {**QUICK, "bandwidth": 0.6, "noise": 0.01, "output_scale": 1.0}
    exact, few = (GPRegressor("gaussian", n_landmarks=m, **given).fit(X, Y) for m in (None, 40))
    single = GPRegressor("gaussian", **given).fit(X, Y[:, 0])
    assert few.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=1.0)
    assert exact.log_marginal_likelihood_ > single.log_marginal_likelihood_ + 20


@pytest.mark.parametrize("metric", ["ard"])
def test_noise_that_is_there_is_not_said_to_be_missing(metric):
    X = np.random.default_rng(0).normal(size=(80, 5))
    y = (X[:, 0] + X[:, 1]) ** 2 + 0.2 * numbers(80, seed=1)
    GPRegressor("gaussian", metric, warp="none", random_state=0).fit(X, y)


def test_a_given_kernel_keeps_its_bandwidth_where_that_is_asked_for():
    X, y = rows(20)
    options = {"metric": "identity", "warp": "none", "noise": 0.1, "output_scale": 2.0}
    assert GPRegressor(Gaussian(1.3), bandwidth=None, **options).fit(X, y).kernel_.bandwidth == 1.3
    assert GPRegressor(Gaussian(1.3), bandwidth=0.7, **options).fit(X, y).kernel_.bandwidth == 0.7
    learned = GPRegressor(Gaussian(1.3), **options).fit(X, y)
    assert learned.kernel_.bandwidth != 1.3
    assert (learned.noise_, learned.output_scale_) == (pytest.approx(0.1), 2.0)


@pytest.mark.parametrize("given", [{}, {"noise": 0.01, "output_scale": 1.0}], ids=["learned", "given"])
def test_the_bound_on_landmarks_is_below_the_evidence_of_the_exact_process(given):
    """Both are at the same output scale: the best one, or the one that was given."""
    X = np.linspace(0, 6, 60)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * numbers(60)
    options = {**QUICK, "bandwidth": 0.6, **given}
    few = GPRegressor("gaussian", n_landmarks=40, **options).fit(X, y)
    # The exact process at the ridge that the landmarks have.
    scale = given.get("output_scale", 1.0)
    Z = few.columns_.transform(X)
    A, centered = few.kernel_.matrix(Z) + few.ridge_ * np.eye(60), y - y.mean()
    scale = scale if given else centered @ np.linalg.solve(A, centered) / 60
    exact = multivariate_normal.logpdf(centered, cov=scale * A)
    assert exact - 1.0 < few.log_marginal_likelihood_ < exact + 1e-3
