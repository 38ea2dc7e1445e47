"""Laplace's approximation of Gaussian process classification, beside the same with dense matrices of all classes."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.testing import assert_close

from mercer.tabular_models.expected_softmax import expected_softmax
from mercer.tabular_models.laplace import (
    left_out_latents,
    log_evidence,
    softmax_posterior,
    step_by_conjugate_gradients,
    step_of_two_classes,
)
from mercer.tabular_models.latent_curvature import curvature, of_many_classes, of_two_classes, one_variance

OFFSETS = torch.tensor([0.3, -0.2, 0.0], dtype=torch.float64)


def case(n=14, c=3, seed=0, shared=False):
    """A covariance, targets and weights."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2))
    K = 2.5 * np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2)) + 1e-6 * np.eye(n)
    targets = random.dirichlet(np.ones(c), size=n) if shared else np.eye(c)[random.integers(c, size=n)]
    weights = random.uniform(0.5, 3.0, size=n)
    return x, torch.from_numpy(K), torch.from_numpy(targets), torch.from_numpy(weights)


def dense(K, c):
    """The prior covariance of all latent values, class by class."""
    return torch.block_diag(*[K] * c)


def dense_hessian(log_p, weights):
    """The negative Hessian of the log likelihood, in the same order."""
    n, c = log_p.shape
    p, W = log_p.exp(), torch.zeros(n * c, n * c, dtype=log_p.dtype)
    for i in range(n):
        for a in range(c):
            for b in range(c):
                W[a * n + i, b * n + i] = weights[i] * ((a == b) * p[i, a] - p[i, a] * p[i, b])
    return W


def negative_log_posterior(f, K, targets, weights):
    """Minus the log posterior of the latent values, without constants."""
    log_p = torch.log_softmax(f + OFFSETS[: targets.shape[1]], dim=1)
    return 0.5 * (f * torch.linalg.solve(K, f)).sum() - (weights[:, None] * targets * log_p).sum()


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_the_mode_is_where_autograd_and_another_optimizer_find_it(c, shared):
    _, K, targets, weights = case(c=c, shared=shared)
    found = softmax_posterior(K, targets, weights, OFFSETS[:c])
    f = (K @ found.coefficients).requires_grad_()
    value = negative_log_posterior(f, K, targets, weights)
    slope = torch.autograd.grad(value, f)[0]
    value = value.detach()
    assert slope.abs().max() < 1e-4
    root = torch.linalg.cholesky(K)

    def by_numbers(u):
        v = torch.from_numpy(u.reshape(targets.shape)).requires_grad_()
        value = negative_log_posterior(root @ v, K, targets, weights)
        slope = torch.autograd.grad(value, v)[0]
        return float(value.detach()), slope.numpy().ravel()

    other = minimize(by_numbers, np.zeros(targets.numel()), jac=True, method="BFGS")
    assert float(value) == pytest.approx(other.fun, abs=1e-5)


@pytest.mark.parametrize("c", [2, 3])
def test_the_evidence_and_the_covariance_are_those_of_the_dense_matrices(c):
    x, K, targets, weights = case(c=c)
    n = len(K)
    found = softmax_posterior(K, targets, weights, OFFSETS[:c])
    f = K @ found.coefficients
    log_p = torch.log_softmax(f + OFFSETS[:c], dim=1)
    W, prior = dense_hessian(log_p, weights), dense(K, c)
    curved = curvature(K, log_p, weights)
    log_determinant = float(torch.linalg.slogdet(torch.eye(n * c, dtype=K.dtype) + prior @ W)[1])
    assert curved.log_determinant == pytest.approx(log_determinant, rel=1e-8)
    likelihood = float((weights[:, None] * targets * log_p).sum())
    quadratic = float((f * torch.linalg.solve(K, f)).sum())
    evidence = log_evidence(K, found, weights, OFFSETS[:c])
    assert evidence == pytest.approx(likelihood - 0.5 * quadratic - 0.5 * log_determinant, abs=1e-6)
    asked = np.random.default_rng(1).normal(size=(4, 2))
    k = torch.from_numpy(2.5 * np.exp(-0.5 * ((x[:, None] - asked[None]) ** 2).sum(axis=2)))
    inner = torch.linalg.solve(torch.eye(n * c, dtype=K.dtype) + W @ prior, W)
    covariance = curved.covariance(k, torch.full((4,), 2.5, dtype=K.dtype))
    for i in range(4):
        Q = torch.block_diag(*[k[:, i : i + 1]] * c)
        assert_close(covariance[i], 2.5 * torch.eye(c, dtype=K.dtype) - Q.T @ inner @ Q, rtol=1e-6, atol=1e-8)


def test_one_function_for_two_classes_is_the_posterior_of_two_functions():
    x, K, _, weights = case(c=2, shared=True)
    log_p = torch.log_softmax(torch.from_numpy(np.random.default_rng(1).normal(0.0, 3.0, size=(len(K), 2))), dim=1)
    one, two = of_two_classes(K, log_p, weights), of_many_classes(K, log_p, weights)
    assert one.log_determinant == pytest.approx(two.log_determinant, rel=1e-10)
    asked = np.random.default_rng(2).normal(size=(5, 2))
    k = torch.from_numpy(2.5 * np.exp(-0.5 * ((x[:, None] - asked[None]) ** 2).sum(axis=2)))
    prior = torch.full((5,), 2.5, dtype=K.dtype)
    assert_close(one.covariance(k, prior), two.covariance(k, prior), rtol=1e-8, atol=1e-8)
    # So has one variance of all functions, as far as the softmax sees: the variance of their difference.
    cheap = one_variance(K, log_p, weights)
    assert cheap.log_determinant == pytest.approx(two.log_determinant, rel=1e-10)
    apart = torch.tensor([1.0, -1.0], dtype=K.dtype)
    variances = [torch.einsum("a,nab,b->n", apart, each.covariance(k, prior), apart) for each in (cheap, two)]
    assert_close(*variances, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("c", [2, 3, 5])
def test_one_variance_is_that_of_a_hessian_of_the_same_trace_which_sees_all_differences_alike(c):
    x, K, _, weights = case(c=c, shared=True)
    n = len(K)
    log_p = torch.log_softmax(torch.from_numpy(np.random.default_rng(1).normal(0.0, 2.0, size=(n, c))), dim=1)
    project, own = torch.eye(c, dtype=K.dtype) - 1.0 / c, dense_hessian(log_p, weights)
    W = torch.zeros_like(own)
    for i in range(n):
        block = own[i::n, i::n]
        W[i::n, i::n] = block.trace() / (c - 1) * project
    prior = dense(K, c)
    cheap = one_variance(K, log_p, weights)
    assert cheap.log_determinant == pytest.approx(float(torch.linalg.slogdet(torch.eye(n * c) + prior @ W)[1]))
    inner = torch.linalg.solve(torch.eye(n * c, dtype=K.dtype) + W @ prior, W)
    asked = np.random.default_rng(2).normal(size=(4, 2))
    k = torch.from_numpy(2.5 * np.exp(-0.5 * ((x[:, None] - asked[None]) ** 2).sum(axis=2)))
    covariance = cheap.covariance(k, torch.full((4,), 2.5, dtype=K.dtype))
    for i in range(4):
        Q = torch.block_diag(*[k[:, i : i + 1]] * c)
        dense_one = 2.5 * torch.eye(c, dtype=K.dtype) - Q.T @ inner @ Q
        assert_close(project @ covariance[i] @ project, project @ dense_one @ project, rtol=1e-6, atol=1e-8)
    # Left out: the row has no weight.
    for i in (0, 3):
        without = weights.clone()
        without[i] = 0.0
        expected = one_variance(K, log_p, without).variance(K[:, [i]], K.diagonal()[[i]])
        assert_close(cheap.left_out_variance(K, torch.tensor([i])), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("c", [2, 4])
def test_newton_steps_solve_their_equations(c):
    _, K, _, weights = case(c=c)
    n = len(K)
    random = np.random.default_rng(3)
    log_p = torch.log_softmax(torch.from_numpy(random.normal(0.0, 2.0, size=(n, c))), dim=1)
    missing = torch.from_numpy(random.normal(size=(n, c)))
    system = torch.eye(n * c, dtype=K.dtype) + dense_hessian(log_p, weights) @ dense(K, c)
    exact = torch.linalg.solve(system, missing.T.reshape(-1)).reshape(c, n).T
    assert_close(step_by_conjugate_gradients(K, missing, log_p, weights), exact, rtol=0.0, atol=1e-2)
    if c == 2:
        assert_close(step_of_two_classes(K, missing, log_p, weights), exact)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_the_mode_is_found_under_a_wide_prior_too(c, scale):
    # Many rows whose classes are nearly separated: steps that are not solved well enough go astray here.
    random = np.random.default_rng(4)
    x = random.normal(size=(120, 6))
    K = torch.from_numpy(scale * np.exp(-0.05 * ((x[:, None] - x[None]) ** 2).sum(axis=2)))
    targets = torch.from_numpy(np.eye(c)[np.argmax(x[:, :c] + 0.3 * random.normal(size=(120, c)), axis=1)])
    weights, offsets = torch.ones(120, dtype=K.dtype), torch.zeros(c, dtype=K.dtype)
    found = softmax_posterior(K, targets, weights, offsets)
    slope = targets - torch.softmax(K @ found.coefficients, dim=1)
    assert (found.coefficients - slope).abs().max() < 1e-3


def test_a_good_start_ends_at_the_same_mode_and_weights_are_repeats():
    _, K, targets, _ = case(n=8)
    counts = torch.tensor([1, 2, 1, 3, 1, 1, 2, 1])
    index = torch.repeat_interleave(torch.arange(8), counts)
    weighted = softmax_posterior(K, targets, counts.to(K.dtype), OFFSETS)
    again = softmax_posterior(K, targets, counts.to(K.dtype), OFFSETS, weighted.coefficients + 0.1)
    assert_close(again.coefficients, weighted.coefficients, atol=1e-4, rtol=1e-3)
    jitter = K[index][:, index] + 1e-9 * torch.eye(len(index), dtype=K.dtype)
    repeated = softmax_posterior(jitter, targets[index], torch.ones(len(index), dtype=K.dtype), OFFSETS)
    summed = torch.zeros_like(targets).index_add_(0, index, repeated.coefficients)
    assert_close(summed, weighted.coefficients, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("c", [2, 3, 5, 26])
def test_expected_probabilities_are_those_of_draws(c):
    random = np.random.default_rng(c)
    mean = random.normal(0, 2, size=(6, c))
    root = random.normal(size=(6, c, c)) * math.sqrt(3 / c)
    covariance = root @ root.transpose(0, 2, 1)
    found = expected_softmax(torch.from_numpy(mean), torch.from_numpy(covariance)).numpy()
    for m, C, p in zip(mean, covariance, found, strict=True):
        drawn = random.multivariate_normal(m, C, size=40_000)
        e = np.exp(drawn - drawn.max(axis=1, keepdims=True))
        assert np.abs((e / e.sum(axis=1, keepdims=True)).mean(axis=0) - p).max() < 0.02
    assert np.allclose(found.sum(axis=1), 1.0)
    if c == 2:
        at, chances = np.polynomial.hermite_e.hermegauss(200)
        spread = np.sqrt(covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1])
        odds = (mean[:, 0] - mean[:, 1])[:, None] + spread[:, None] * at
        assert np.allclose(found[:, 0], (1.0 / (1.0 + np.exp(-odds))) @ chances / chances.sum(), atol=1e-3)
    # Without spread it is the softmax itself.
    sure = expected_softmax(torch.from_numpy(mean), torch.zeros(6, c, c, dtype=torch.float64))
    assert_close(sure, torch.softmax(torch.from_numpy(mean), dim=1))


@pytest.mark.parametrize("c", [2, 3])
def test_left_out_latents_divide_one_factor_out_of_the_dense_posterior(c):
    _, K, targets, weights = case(n=9, c=c)
    n = len(K)
    posterior = softmax_posterior(K, targets, weights, OFFSETS[:c])
    f = K @ posterior.coefficients
    log_p = torch.log_softmax(f + OFFSETS[:c], dim=1)
    slope = weights[:, None] * (targets - log_p.exp())
    W, prior = dense_hessian(log_p, weights), dense(K, c)
    means, covariances = left_out_latents(K, posterior, targets, weights, OFFSETS[:c], torch.arange(n))
    for i in range(n):
        own = [a * n + i for a in range(c)]
        # Without its factor, the row's latent values are those of a posterior whose other factors stay as they are.
        others, linear = W.clone(), W @ f.T.reshape(-1) + slope.T.reshape(-1)
        others[own], linear[own] = 0.0, 0.0
        covariance = torch.linalg.inv(torch.linalg.inv(prior) + others)
        mean = covariance @ linear
        assert_close(means[i], mean[own], rtol=1e-4, atol=1e-5)
        assert_close(covariances[i], covariance[own][:, own], rtol=1e-4, atol=1e-5)
    some = torch.tensor([7, 2])
    few_means, few_covariances = left_out_latents(K, posterior, targets, weights, OFFSETS[:c], some)
    assert_close(few_means, means[some])
    assert_close(few_covariances, covariances[some])
