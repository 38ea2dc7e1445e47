"""One noise model: everything that solves, scores or predicts is that of K + gamma ridge I + (1 - gamma) ridge / W."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from mercer import ColumnWarp
from mercer.kernels import Gaussian, Laplace
from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models.evidence import matrix_evidence
from mercer.tabular_models.finish import solved
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.metric_learning import coefficients
from mercer.tabular_models.noise import effective_weights
from mercer.tabular_models.plans import Plan
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Iterate
from tests.examples_of import numbers
from tests.tabular_models.test_table import table_of

RIDGE = 0.3
COUNTS = np.array([1, 3, 2, 1, 1, 4, 2, 1])
GROUP = np.repeat(np.arange(8), COUNTS)
AT = numbers(5, 2, seed=5)

gammas = pytest.mark.parametrize("gamma", [0.0, 0.3, 0.9])
kernels = pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplace(1.2)])


def measured(outputs=2):
    """Rows of which some were measured several times, and all measurements."""
    X = numbers(8, 2)
    y = np.sin(2 * X[GROUP][:, [0]] + np.arange(outputs)) + 0.4 * numbers(len(GROUP), outputs, seed=3)
    return X[GROUP], y


def noise_of_all(gamma, ridge=RIDGE):
    """The covariance of the noise of all measurements: a part that identical rows share, and one of their own."""
    same = GROUP[:, None] == GROUP
    return gamma * ridge * same + (1 - gamma) * ridge * np.eye(len(GROUP))


def noise_of_rows(table, gamma, ridge=RIDGE):
    """The noise of the means of distinct rows, gamma ridge I + (1 - gamma) ridge / W, with how often each came."""
    X, _ = measured()
    counts = np.array([(row == X).all(axis=1).sum() for row in table.X])
    return np.diag(gamma * ridge + (1 - gamma) * ridge / counts)


def best_log_density(y, A):
    """The largest over s of log N(y; 0, s A), summed over the columns of y."""
    scales = (y * np.linalg.solve(A, y)).sum(axis=0) / len(y)
    return sum(multivariate_normal.logpdf(column, cov=s * A) for column, s in zip(y.T, scales, strict=True))


@gammas
def test_weights_are_those_of_the_noise_of_a_mean(gamma):
    w = torch.tensor([0.5, 1.0, 2.0, 7.0], dtype=torch.float64)
    v = effective_weights(w, gamma)
    assert_allclose(RIDGE / v, gamma * RIDGE + (1 - gamma) * RIDGE / w)
    assert effective_weights(None, gamma) is None
    assert_allclose(effective_weights(torch.ones(3), gamma), 1.0, rtol=1e-6)


def test_the_mean_of_many_copies_keeps_the_noise_that_they_share():
    many = torch.tensor([1e9], dtype=torch.float64)
    assert float(1 / effective_weights(many, 0.25)) == pytest.approx(0.25)
    assert float(1 / effective_weights(many, 0.0)) == pytest.approx(1e-9)


@gammas
@kernels
def test_the_solution_and_what_is_left_out_are_those_of_the_system_of_distinct_rows(kernel, gamma):
    table = table_of(*measured(), shared_noise=gamma)
    K, y = kernel.matrix(table.X), table.y.numpy()
    A = K + noise_of_rows(table, gamma)
    solution = ridge_leave_one_out(torch.from_numpy(K), table.y, RIDGE, table.weights)
    assert_allclose(coefficients(kernel, RIDGE, table.warped("none"), table), np.linalg.solve(A, y), atol=1e-10)
    assert_allclose(solution.alpha, np.linalg.solve(A, y), atol=1e-10)
    whole = solved(Iterate(kernel, RIDGE), Plan(Setting(kernel, "none"), []), table, None, variances=True)
    assert_allclose(whole.machine.alpha, solution.alpha, atol=1e-10)
    for i in range(8):
        rest = np.arange(8) != i
        explained = np.linalg.solve(A[np.ix_(rest, rest)], np.column_stack([y[rest], K[rest, i]]))
        assert_allclose(solution.residuals[i], y[i] - K[i, rest] @ explained[:, :-1], atol=1e-10)
        expected = A[i, i] - K[i, rest] @ explained[:, -1]
        assert float(solution.variances[i]) == pytest.approx(expected)
        assert whole.left_out_variances[i] == pytest.approx(expected)


@gammas
@kernels
def test_what_is_left_out_is_a_row_with_all_its_copies(kernel, gamma):
    """The system of all measurements, copies written out, without those of one row."""
    X, Y = measured()
    table = table_of(X, Y, shared_noise=gamma)
    solution = ridge_leave_one_out(kernel.matrix(table.warped("none")), table.y, RIDGE, table.weights)
    A, y = kernel.matrix(X) + noise_of_all(gamma), Y - table.center
    for i, row in enumerate(table.X):
        own = (row == X).all(axis=1)
        k = kernel.matrix(row[None], X[~own])[0]
        mean = k @ np.linalg.solve(A[np.ix_(~own, ~own)], y[~own])
        assert_allclose(solution.residuals[i], y[own].mean(axis=0) - mean, atol=1e-10)
        variance = 1.0 + noise_of_all(gamma)[np.ix_(own, own)].mean()
        variance -= k @ np.linalg.solve(A[np.ix_(~own, ~own)], k)
        assert float(solution.variances[i]) == pytest.approx(variance)


@gammas
@kernels
def test_mean_and_variance_are_those_of_all_measurements(kernel, gamma):
    """With gamma = 0 the system of all rows is K + ridge I."""
    X, Y = measured()
    table = table_of(X, Y, shared_noise=gamma)
    alpha = coefficients(kernel, RIDGE, table.warped("none"), table).numpy()
    columns = ColumnWarp(standardize=False).fit(X)
    fitted = Machine(kernel, columns, table.X, alpha, RIDGE, 1.0, np.ones(2), table.weights.numpy())
    A, k = kernel.matrix(X) + noise_of_all(gamma), kernel.matrix(AT, X)
    assert_allclose(fitted.mean(AT), k @ np.linalg.solve(A, Y - table.center), atol=1e-10)
    covariance = kernel.matrix(AT) - k @ np.linalg.solve(A, k.T)
    assert_allclose(fitted.unit_covariance(AT), covariance, atol=1e-10)
    assert_allclose(fitted.unit_variance(AT), covariance.diagonal(), atol=1e-10)


@gammas
@pytest.mark.parametrize("outputs", [1, 2])
@kernels
def test_the_evidence_of_the_means_is_their_density(kernel, outputs, gamma):
    table = table_of(*measured(outputs), shared_noise=gamma)
    A = kernel.matrix(table.X) + noise_of_rows(table, gamma)
    found = matrix_evidence(kernel.matrix(table.warped("none")), table.y, math.log(RIDGE), table.weights)
    assert -8 * outputs * found == pytest.approx(best_log_density(table.y.numpy(), A))


@gammas
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_evidence_with_repeats_moves_as_that_of_all_measurements(outputs, gamma):
    """They differ by what depends on the counts and on gamma alone, whatever the kernel and the ridge."""
    X, Y = measured(outputs)
    table = table_of(X, Y, shared_noise=gamma)
    short, long = [], []
    for kernel, ridge in ((Gaussian(0.9), 0.3), (Gaussian(0.4), 0.02), (Laplace(1.2), 1.5)):
        K = kernel.matrix(table.warped("none"))
        found = matrix_evidence(K, table.y, math.log(ridge), table.weights, table.repeats)
        short.append(-len(X) * outputs * found)
        long.append(best_log_density(Y - table.center, kernel.matrix(X) + noise_of_all(gamma, ridge)))
    assert np.ptp(short) > 1.0
    assert_allclose(np.diff(short), np.diff(long), atol=1e-8)
