"""RFM, GP, GP-ARD and GP-RFM against loops that follow sections 2.1 to 2.3 line by line."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.base import clone

import mercer
from mercer import io
from mercer.exceptions import InvalidParameterError
from mercer.metrics import negative_log_likelihood
from mercer.papers import gp, gp_ard, gp_rfm, rfm, seventy_thirty
from mercer.papers.rfm_and_ard import GRID_ITERATIONS, GRID_RIDGES
from mercer.tabular_models.learned_on_all_rows import AverageGradients, MaximumLikelihood
from tests.examples_of import numbers

N, D = 40, 3
X = numbers(N, D, seed=1)
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 0] + 0.4 * numbers(N, 1, seed=2)[:, 0] + 4.0
NEW = numbers(6, D, seed=3)


def standardized(A):
    return (A - X.mean(axis=0)) / X.std(axis=0)


def distance(x, z, M):
    return np.sqrt((x - z) @ M @ (x - z))


def k(A, B, M, length):
    return np.array([[np.exp(-distance(a, b, M) / length) for b in B] for a in A])


def gradient(x, Z, alpha, M, length):
    """Of f(x) = sum_j alpha_j exp(-|x - z_j|_M / l); the kernel of a row with itself has a kink, and gives nothing."""
    total = np.zeros(len(x))
    for z, a in zip(Z, alpha, strict=True):
        r = distance(x, z, M)
        if r > 0:
            total -= a * np.exp(-r / length) * (M @ (x - z)) / (r * length)
    return total


def median_distance(Z, M):
    return np.median([distance(Z[i], Z[j], M) for i in range(len(Z)) for j in range(i)])


def recursion(kind, n_iter, ridge):
    """Section 2.3: M(0) = I; alpha with M fixed; M from the gradients."""
    Z, y = standardized(X), (Y - Y.mean()) / Y.std()
    M, length = np.eye(D), median_distance(Z, np.eye(D))
    for _ in range(n_iter):
        alpha = np.linalg.solve(k(Z, Z, M, length) + ridge * np.eye(N), y)
        G = [gradient(x, Z, alpha, M, length) for x in Z]
        M = sum(np.outer(g, g) for g in G) / N
        M = np.diag(np.diag(M)) if kind == "diagonal" else M
    return M, length


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_rfm_is_the_recursion(kind):
    model = rfm(kind, n_iter=3, ridge=1e-3).fit(X, Y)
    M, length = recursion(kind, 3, 1e-3)
    np.testing.assert_allclose(model.metric_.matrix(D), M, rtol=1e-7, atol=1e-10)
    assert model.kernel_.bandwidth == pytest.approx(length)
    Z, y = standardized(X), (Y - Y.mean()) / Y.std()
    alpha = np.linalg.solve(k(Z, Z, M, length) + 1e-3 * np.eye(N), y)
    expected = Y.mean() + Y.std() * k(standardized(NEW), Z, M, length) @ alpha
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-8)


def nll(log_lengths, log_noise, Z, y, squared):
    """-log p(y | X, theta) of y ~ N(0, K + sigma^2 I) with autograd: no scale, no mean."""
    V = Z / torch.exp(log_lengths)
    r2 = (V[:, None] - V[None]).square().sum(dim=2)
    # The root has no derivative at 0: the diagonal is told apart.
    g = -0.5 * r2 if squared else -torch.where(r2 > 0, torch.where(r2 > 0, r2, 1.0).sqrt(), 0.0)
    A = torch.exp(g) + torch.exp(log_noise) * torch.eye(len(y), dtype=torch.float64)
    return 0.5 * (y @ torch.linalg.solve(A, y) + torch.logdet(A) + len(y) * np.log(2 * np.pi))


def likeliest(Z, n_lengths, squared=False):
    """Minimize it from the median distance and a noise of a tenth."""
    y = torch.from_numpy((Y - Y.mean()) / Y.std())
    first = np.log(median_distance(Z, np.eye(Z.shape[1])))
    Z = torch.from_numpy(Z)

    def value(theta):
        theta = torch.tensor(theta, requires_grad=True)
        found = nll(theta[:-1].expand(Z.shape[1]) if n_lengths == 1 else theta[:-1], theta[-1], Z, y, squared)
        found.backward()
        return found.item(), theta.grad.numpy()

    start = np.append(np.full(n_lengths, first), np.log(0.1))
    bounds = [(-6, 9)] * n_lengths + [(np.log(1e-8), np.log(30))]
    return minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-8})


def process(Z, Z_new, kernel, noise):
    """Section 2.2: mean and variance of an observation, in units of y."""
    y = (Y - Y.mean()) / Y.std()
    A, K_new = kernel(Z, Z) + noise * np.eye(N), kernel(Z_new, Z)
    mean = K_new @ np.linalg.solve(A, y)
    variance = 1.0 - np.einsum("ij,ji->i", K_new, np.linalg.solve(A, K_new.T)) + noise
    return Y.mean() + Y.std() * mean, Y.std() * np.sqrt(variance)


def check(model, Z, Z_new, found, kernel):
    """Likelihood, parameters and predictions of a fitted process are those of the twin."""
    # Of the targets themselves, whose density is that of the standardized ones over the deviation.
    assert model.log_marginal_likelihood_ == pytest.approx(-found.fun - N * np.log(Y.std()), abs=1e-3)
    noise = model.noise_ / model.output_scale_
    assert model.output_scale_ == pytest.approx(Y.var())
    assert noise == pytest.approx(np.exp(found.x[-1]), rel=0.05, abs=1e-4)
    mean, std = model.predict(NEW, return_std=True)
    expected_mean, expected_std = process(Z, Z_new, kernel, noise)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=1e-8)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_gp_has_one_length_by_maximum_likelihood_and_no_scale(name):
    model, Z = gp(name).fit(X, Y), standardized(X)
    found, length = likeliest(Z, 1, name == "gaussian"), model.kernel_.bandwidth
    assert length == pytest.approx(np.exp(found.x[0]), rel=0.05)

    def kernel(A, B):
        r = -np.log(k(A, B, np.eye(D), 1.0))
        return np.exp(-(r**2) / (2 * length**2)) if name == "gaussian" else np.exp(-r / length)

    check(model, Z, standardized(NEW), found, kernel)


def test_gp_ard_has_a_length_a_column():
    model, Z = gp_ard().fit(X, Y), standardized(X)
    found, M = likeliest(Z, D), model.metric_.matrix(D)
    assert model.kernel_.bandwidth == 1.0
    # A column that does not count has no length: its weight is 0 in both.
    np.testing.assert_allclose(np.sqrt(M.diagonal()), np.exp(-found.x[:-1]), rtol=0.05, atol=2e-3)
    np.testing.assert_array_equal(M, np.diag(M.diagonal()))
    check(model, Z, standardized(NEW), found, lambda A, B: k(A, B, M, 1.0))


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_gp_rfm_learns_the_metric_first_and_then_length_and_noise_once(kind):
    model = gp_rfm(kind, n_iter=2, ridge=1e-3).fit(X, Y)
    M, _ = recursion(kind, 2, 1e-3)
    np.testing.assert_allclose(model.metric_.matrix(D), M, rtol=1e-7, atol=1e-10)
    values, vectors = np.linalg.eigh(M)
    found = likeliest(standardized(X) @ vectors * np.sqrt(np.maximum(values, 0)), 1)
    length = model.kernel_.bandwidth
    assert length == pytest.approx(np.exp(found.x[0]), rel=0.05)
    check(model, standardized(X), standardized(NEW), found, lambda A, B: k(A, B, M, length))


def test_the_protocol_takes_the_likeliest_candidate_of_thirty_percent_and_fits_all_rows():
    searched = seventy_thirty(gp_rfm(), random_state=0).fit(X, Y)
    random = np.random.RandomState(0).permutation(N)
    out, kept = random[:12], random[12:]
    losses = {}
    for n_iter in GRID_ITERATIONS:
        for ridge in GRID_RIDGES:
            model = gp_rfm(n_iter=n_iter, ridge=ridge).fit(X[kept], Y[kept])
            losses[n_iter, ridge] = negative_log_likelihood(Y[out], *model.predict(X[out], return_std=True))
    n_iter, ridge = min(losses, key=losses.get)
    best = gp_rfm(n_iter=n_iter, ridge=ridge).fit(X, Y)
    np.testing.assert_array_equal(searched.predict(NEW), best.predict(NEW))
    assert len(seventy_thirty(rfm()).param_grid["metric"]) == len(GRID_ITERATIONS) * len(GRID_RIDGES)
    model = gp_ard()
    assert seventy_thirty(model) is model


def test_the_likelihood_of_some_rows_and_the_machine_of_all():
    model = gp_rfm(n_iter=1, rows=20).fit(X, Y)
    whole = gp_rfm(n_iter=1).fit(X, Y)
    assert len(model.machines_[0].rows) == N
    assert model.kernel_.bandwidth != whole.kernel_.bandwidth
    np.testing.assert_array_equal(model.metric_.matrix(D), whole.metric_.matrix(D))


@pytest.mark.parametrize("make", [rfm, gp, gp_ard, gp_rfm])
def test_presets_are_estimators(make, tmp_path):
    model = make(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(NEW), model.predict(NEW))
    io.save(model, tmp_path / "model")
    loaded = io.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert loaded.metric == model.metric
    assert len(make(warp="rank").fit(X, Y).history_) == 1
    flat = make().fit(X, np.ones(N))
    np.testing.assert_allclose(flat.predict(NEW), 1.0)


def test_what_cannot_be_searched_for_is_named():
    for wrong in ({"warp": "auto"}, {"n_landmarks": 10}, {"kernel": "auto"}, {"kernel": "linear"}):
        with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))}="):
            gp_rfm().set_params(**wrong).fit(X, Y)
    with pytest.raises(InvalidParameterError, match="metric="):
        mercer.GPClassifier(metric=MaximumLikelihood()).fit(X, Y > 4)
    for wrong in ({"kind": "round"}, {"n_iter": -1}, {"ridge": 0.0}, {"bandwidth": 0.0}):
        with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))}="):
            replace(AverageGradients(), **wrong)
    with pytest.raises(InvalidParameterError, match="metric='full'"):
        MaximumLikelihood("full")
    with pytest.raises(InvalidParameterError, match="rows=0"):
        MaximumLikelihood(rows=0)
