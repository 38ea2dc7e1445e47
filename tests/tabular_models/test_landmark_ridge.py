"""Ridge regression on landmarks: equal to the exact one where every row is a landmark, and to refits elsewhere."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from mercer.kernels import Gaussian, Laplace, Linear, ProductLaplace
from mercer.linalg import cholesky, ridge_leave_one_out
from mercer.tabular_models.landmark_ridge import (
    bound_terms,
    landmark_path,
    landmark_posterior_root,
    landmark_sums,
)
from tests.examples_of import numbers

RIDGE = 0.2
KERNELS = {
    "laplace": Laplace(1.5),
    "gaussian": Gaussian(0.5),
    "product": ProductLaplace(2.0),
    "scaled": 3 * Laplace(1.0),
}


def problem(n=20, outputs=2, dtype=torch.float64, weighted=True):
    X = torch.from_numpy(numbers(n, 3))
    y = torch.stack([torch.sin(X[:, 0]), X[:, 1] - 0.3][:outputs], dim=1)
    weights = torch.linspace(0.5, 3.0, n, dtype=torch.float64) if weighted else torch.ones(n, dtype=torch.float64)
    return X.to(dtype), y.to(dtype), weights.to(dtype)


def best_bound(sums, ridge):
    """The bound on the log evidence of all outputs, at their best output scales."""
    terms = bound_terms(sums, ridge)
    return terms.log_evidence(terms.best_scales())


def naive_fit(kernel, X, landmarks, y, w, ridge):
    """The minimizer of sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2 over the span of the landmarks: its coefficients."""
    K_nm, K_mm = kernel.matrix(X, landmarks), kernel.matrix(landmarks)
    return torch.linalg.solve(K_nm.T @ (w[:, None] * K_nm) + ridge * K_mm, K_nm.T @ (w[:, None] * y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_with_every_row_a_landmark_it_is_the_exact_fit(kernel, weighted):
    X, y, w = problem(weighted=weighted)
    given = w if weighted else None
    sums = landmark_sums(kernel, X, X, y, given)
    (solution,) = landmark_path(sums, kernel, X, X, y, [RIDGE], given)
    exact = ridge_leave_one_out(kernel.matrix(X), y, RIDGE, given)
    for a, b in zip(solution, exact, strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    A = kernel.matrix(X) + torch.diag(RIDGE / w)
    q = (y * torch.linalg.solve(A, y)).sum(dim=0)
    assert_allclose(bound_terms(sums, RIDGE).best_scales(), q / len(X), rtol=1e-8)
    # N(y; 0, s A) at the best s, less the terms of W alone
    densities = [multivariate_normal.logpdf(v, cov=s * A) for v, s in zip(y.T.numpy(), q.numpy() / len(X), strict=True)]
    assert best_bound(sums, RIDGE) == pytest.approx(np.sum(densities) - float(w.log().sum()))


@pytest.mark.parametrize("ridge", [0.02, 1.0])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_leave_one_out_equals_refits_without_the_row(kernel, ridge):
    X, y, w = problem()
    landmarks = X[::3] + 0.1
    sums = landmark_sums(kernel, X, landmarks, y, w)
    seen = torch.arange(0, 20, 2)  # errors may be asked for at some of the rows
    first, solution = landmark_path(sums, kernel, X[seen], landmarks, y[seen], [9.0, ridge], w[seen])
    assert (first.ridge, solution.ridge) == (9.0, ridge)
    assert_allclose(solution.alpha, naive_fit(kernel, X, landmarks, y, w, ridge), rtol=1e-6, atol=1e-9)
    K_nm, K_mm = kernel.matrix(X, landmarks), kernel.matrix(landmarks)
    for i, residual, variance in zip(seen, solution.residuals, solution.variances, strict=True):
        rest = torch.arange(20) != i
        alpha = naive_fit(kernel, X[rest], landmarks, y[rest], w[rest], ridge)
        assert_allclose(residual, y[i] - K_nm[i] @ alpha, rtol=1e-6, atol=1e-9)
        B = K_mm + K_nm[rest].T @ (w[rest, None] * K_nm[rest]) / ridge
        left = kernel.diagonal(X[i : i + 1])[0] - K_nm[i] @ torch.linalg.solve(K_mm, K_nm[i])
        expected = left + K_nm[i] @ torch.linalg.solve(B, K_nm[i]) + ridge / w[i]
        assert float(variance) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_bound_is_the_naive_one_and_below_the_evidence(kernel):
    X, y, w = problem()
    sums = landmark_sums(kernel, X, X[::2], y, w)
    exact = landmark_sums(kernel, X, X, y, w)
    K_nm, K = kernel.matrix(X, X[::2]), kernel.matrix(X)
    Q = K_nm @ torch.linalg.solve(kernel.matrix(X[::2]), K_nm.T)
    for ridge in (0.01, RIDGE, 2.0):
        A = Q + torch.diag(ridge / w)
        scales = (y * torch.linalg.solve(A, y)).sum(dim=0) / 20
        assert_allclose(bound_terms(sums, ridge).best_scales(), scales, rtol=1e-6)
        densities = [multivariate_normal.logpdf(v, cov=float(s) * A) for v, s in zip(y.T, scales, strict=True)]
        trace = float((w * (K - Q).diagonal()).sum()) / (2 * ridge)
        expected = np.sum(densities) - float(w.log().sum()) - 2 * trace
        assert best_bound(sums, ridge) == pytest.approx(expected, rel=1e-6)
        assert best_bound(sums, ridge) < best_bound(exact, ridge)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_posterior_root_is_that_of_the_whitened_landmarks(kernel):
    X, y, w = problem()
    landmarks = X[::3]
    root = landmark_posterior_root(landmark_sums(kernel, X, landmarks, y, w), kernel, landmarks, RIDGE)
    K_nm, L = kernel.matrix(X, landmarks), torch.linalg.cholesky(kernel.matrix(landmarks))
    half = torch.linalg.solve(L, K_nm.T)
    expected = torch.linalg.inv(torch.eye(len(L)) + half @ (w[:, None] * half.T) / RIDGE)
    assert_allclose(root.T @ root, expected, rtol=1e-7, atol=1e-9)
    assert (root.triu(1) == 0).all()


@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_the_posterior_root_stands_rounding_where_landmarks_are_nearly_dependent(ridge):
    """A wide Gaussian on many landmarks: its matrix has no inverse, and variances are those in its eigenvectors."""
    X, at = torch.from_numpy(numbers(400, 2)), torch.from_numpy(numbers(50, 2, seed=1))
    kernel, landmarks = Gaussian(2.0), X[:60]
    assert torch.linalg.cond(kernel.matrix(landmarks)) > 1e14
    sums = landmark_sums(kernel, X, landmarks, X[:, :1])
    features = kernel.matrix(at, landmarks) @ (sums.T @ sums.V)
    known = (features.square() * (sums.eigenvalues / (sums.eigenvalues + ridge))).sum(dim=1)
    L = cholesky(kernel.matrix(landmarks), warn=False).lower
    half = torch.linalg.solve_triangular(L, kernel.matrix(landmarks, at), upper=False)
    root = landmark_posterior_root(sums, kernel, landmarks, ridge).float().double()
    added = (root @ half).square().sum(dim=0) - half.square().sum(dim=0)
    assert_allclose(ridge + kernel.diagonal(at) + added, ridge + kernel.diagonal(at) - known, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_of_any_size_give_the_same_sums(dtype):
    X, y, w = problem(60, dtype=dtype)
    whole = landmark_sums(Laplace(1.5), X, X[:9], y, w)
    tiny = landmark_sums(Laplace(1.5), X, X[:9], y, w, working_memory=1e-4)
    for name in ("eigenvalues", "squares", "mass", "n_rows"):
        assert_allclose(getattr(whole, name), getattr(tiny, name), rtol=1e-3 if dtype == torch.float32 else 1e-9)
    assert_allclose(whole.alpha(RIDGE), tiny.alpha(RIDGE), rtol=1e-3 if dtype == torch.float32 else 1e-9)


def test_single_precision_is_close_to_double():
    answers = []
    for dtype in (torch.float32, torch.float64):
        X, y, w = problem(60, dtype=dtype)
        sums = landmark_sums(Laplace(1.5), X, X[:9], y, w)
        assert sums.alpha(RIDGE).dtype == torch.float64
        (solution,) = landmark_path(sums, Laplace(1.5), X, X[:9], y, [RIDGE], w)
        answers.append([solution.alpha, solution.residuals, solution.variances, best_bound(sums, RIDGE)])
    for single, double in zip(*answers, strict=True):
        assert_allclose(single, double, rtol=2e-3, atol=1e-4)


def test_rows_are_warped_a_block_at_a_time_and_weights_are_repeats():
    X, y, _ = problem(30)
    w = torch.from_numpy(np.random.default_rng(0).integers(1, 4, size=30)).double()
    expected = landmark_sums(Laplace(1.5), 2 * X, 2 * X[:9], y, w)
    warped = landmark_sums(Laplace(1.5), X.numpy(), 2 * X[:9], y, w, warp=lambda x: 2 * x, working_memory=1e-3)
    times = w.long()
    repeated = landmark_sums(
        Laplace(1.5), 2 * X.repeat_interleave(times, dim=0), 2 * X[:9], y.repeat_interleave(times, dim=0)
    )
    for sums in (warped, repeated):
        assert_allclose(sums.alpha(RIDGE), expected.alpha(RIDGE), rtol=1e-8)
        assert_allclose(sums.mass, expected.mass)
        assert_allclose(sums.squares, expected.squares)
    assert math.isclose(expected.mass, float(w.sum()))


def test_equal_landmarks_and_a_kernel_of_low_rank_do_no_harm():
    X, y, w = problem()
    twice = torch.cat([X[:6], X[:6]])
    once = landmark_sums(Laplace(1.5), X, X[:6], y, w)
    sums = landmark_sums(Laplace(1.5), X, twice, y, w)
    assert best_bound(sums, RIDGE) == pytest.approx(best_bound(once, RIDGE), rel=1e-6)
    linear = landmark_sums(Linear(), X, X[:9], y, w)
    assert linear.T.shape == (9, 3)
    expected = torch.linalg.solve(X.T @ (w[:, None] * X) + RIDGE * torch.eye(3), X.T @ (w[:, None] * y))
    assert_allclose(X[:9].T @ linear.alpha(RIDGE), expected, rtol=1e-8)
