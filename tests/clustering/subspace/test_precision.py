"""The mean local covariance of self-expression against its definition, and the projections made of it."""

import numpy as np
import pytest
import torch

from mercer.agop import agop
from mercer.clustering.subspace.feature_learning import Precision
from mercer.clustering.subspace.features import (
    Features,
    in_their_span,
    is_rotation_invariant,
    new_rows,
    subspace_bases,
    unit_rows,
)
from mercer.clustering.subspace.jacobians import HeldJacobians, WeightedJacobians, jacobians
from mercer.clustering.subspace.precision import data_covariance, latent_covariance
from mercer.kernels import Gaussian, Laplace, Linear, Polynomial, ProductLaplace
from tests.examples_of import DIFFERENTIABLE, KERNELS, METRICS, ONE_PAIR_OF_WEIGHTS, numbers
from tests.naive import value

RIDGE = 0.3


def naive_jacobian(kernel, X, i):
    """Rows of derivatives of k(x, x_j) at x = x_i, by autograd on the naive kernel; zero for its own."""
    x = X[i].clone().requires_grad_()
    rows = []
    for j in range(len(X)):
        k = value(kernel, x, X[j])
        rows.append(torch.autograd.grad(k, x)[0] if j != i else torch.zeros_like(x))
    return torch.stack(rows)


def naive_latent_covariance(kernel, X, ridge):
    """Line 4 as it is written: for each point the inverse without it."""
    n = len(X)
    K = kernel.matrix(X)
    total = torch.zeros(X.shape[1], X.shape[1], dtype=X.dtype)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        K_i = K[others][:, others]
        inverse = torch.linalg.inv(K_i + ridge * torch.eye(n - 1, dtype=X.dtype))
        G = naive_jacobian(kernel, X, i)[others]
        total += G.T @ inverse @ K_i @ inverse @ G
    return total / n


def rows_of(n=6, d=3, seed=0):
    return torch.from_numpy(numbers(n, d, seed=seed))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_latent_covariance_is_line_4(name, metric):
    X = rows_of()
    kernel = KERNELS[name] if name == "custom" else KERNELS[name].with_metric(METRICS[metric](3))
    expected = naive_latent_covariance(kernel, X, RIDGE)
    actual = latent_covariance(kernel, X, RIDGE)
    torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-10 * float(expected.abs().max()))
    torch.testing.assert_close(latent_covariance(kernel, X, RIDGE, K=kernel.matrix(X)), actual, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_data_covariance_is_the_agop_of_appendix_c(name):
    X = rows_of()
    kernel = KERNELS[name]
    K = kernel.matrix(X)
    Q = torch.linalg.inv(K + RIDGE * torch.eye(len(X), dtype=X.dtype))
    expected = agop(kernel, X, X, Q @ K @ Q @ X)
    torch.testing.assert_close(data_covariance(kernel, X, RIDGE), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ONE_PAIR_OF_WEIGHTS)
def test_weights_and_held_jacobians_agree(name):
    X, kernel = rows_of(12, 4), ONE_PAIR_OF_WEIGHTS[name].with_metric(METRICS["full"](4))
    B, A = torch.from_numpy(numbers(12, 12, seed=1)), torch.from_numpy(numbers(12, 12, seed=2))
    A = A + A.T
    fast, held = WeightedJacobians(kernel, X), HeldJacobians(kernel, X, working_memory=1e-3)
    assert held.step < 12
    torch.testing.assert_close(fast.outer_products(A), held.outer_products(A), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fast.along(B), held.along(B), rtol=1e-9, atol=1e-9)


def test_weights_are_used_where_a_kernel_has_them():
    X = rows_of()
    assert isinstance(jacobians(Gaussian(1.0), X), WeightedJacobians)
    two_metrics = Gaussian(1.0, metric=[1.0, 2.0, 3.0]) + Laplace(1.0)
    for kernel in (ProductLaplace(1.0), KERNELS["custom"], two_metrics, Linear() * ProductLaplace(1.0)):
        assert not kernel.has_gradient_weights
        assert isinstance(jacobians(kernel, X), HeldJacobians)


def test_two_points_need_no_third():
    X = rows_of(2, 3)
    torch.testing.assert_close(
        latent_covariance(Gaussian(1.0), X, RIDGE), naive_latent_covariance(Gaussian(1.0), X, RIDGE)
    )


def spectrum_of(matrix):
    return np.linalg.eigvalsh(matrix.numpy())


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(2, offset=1.0)])
def test_lemma_1_output_covariance_tends_to_the_identity(kernel):
    """P^1/2 Sigma P^1/2 has the eigenvalues mu / (mu + lambda): to 1, or to a projection where Sigma is singular."""
    X = unit_rows(rows_of(30, 4))
    for rows, rank in ((X, 4), (torch.cat([X[:, :2], 0 * X[:, :2]], dim=1), 2)):
        Sigma = latent_covariance(kernel, rows, RIDGE)
        distances = []
        for shrinkage in (1e-2, 1e-4, 1e-6):
            (P,) = Precision(shrinkage, inversion="lemma").shaped(Sigma)
            scale = (
                1.0 / torch.linalg.eigvalsh(Sigma).clamp(min=0).add(shrinkage * torch.linalg.eigvalsh(Sigma)[-1]).min()
            )
            output = scale * P.matrix() @ Sigma @ P.matrix()
            target = torch.cat([torch.zeros(4 - rank), torch.ones(rank)])
            distances.append(np.abs(spectrum_of(output) - target.numpy()).max())
        assert distances[0] > distances[1] > distances[2]
        assert distances[2] < 1e-3


def test_unit_rows_leave_zeros_alone():
    X = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-200, 0.0], [0.0, 1e200]], dtype=torch.float64)
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def test_the_span_changes_no_inner_product_and_new_rows_follow():
    rows = unit_rows(rows_of(5, 12))
    features = in_their_span(rows)
    assert features.rows.shape == (5, 5)
    torch.testing.assert_close(features.rows @ features.rows.T, rows @ rows.T)
    for projection in Precision(0.1).shaped(torch.diag(torch.arange(1.0, 6.0, dtype=torch.float64))):
        twice = features.projected(projection).projected(projection)
        torch.testing.assert_close(new_rows(3.0 * rows, twice.metric(), normalize=True), twice.rows)
        turned = features.projected(projection, keep_axes=False)
        torch.testing.assert_close(new_rows(3.0 * rows, turned.metric(), normalize=True), turned.rows)
        kept = features.projected(projection).rows
        torch.testing.assert_close(turned.rows @ turned.rows.T, kept @ kept.T)
    assert in_their_span(rows_of(9, 3)).map() is None
    assert Features(rows).metric().factor is None


def test_rows_that_depend_on_each_other_have_a_smaller_span():
    rows = unit_rows(torch.cat([rows_of(4, 12), rows_of(4, 12)[:2], rows_of(4, 12)[:1] + rows_of(4, 12)[1:2]]))
    features = in_their_span(rows)
    assert features.rows.shape == (7, 4)
    torch.testing.assert_close(features.rows @ features.rows.T, rows @ rows.T)


def test_algorithm_1_in_the_span_is_algorithm_1():
    rows = unit_rows(rows_of(6, 10))
    for kernel in (Gaussian(0.8), Polynomial(), Laplace(1.0)):
        results = []
        for features in (Features(rows), in_their_span(rows)):
            for _ in range(2):
                Sigma = latent_covariance(kernel, features.rows, 0.1)
                features = features.projected(Precision(0.1, inversion="lemma").shaped(Sigma)[0])
            results.append(features.rows @ features.rows.T)
        torch.testing.assert_close(results[1], results[0], rtol=1e-7, atol=1e-9)


def test_only_kernels_of_lengths_and_angles_are_rotated():
    assert is_rotation_invariant(Gaussian(1.0) + 2.0 * Linear())
    for kernel in (
        ProductLaplace(1.0),
        KERNELS["custom"],
        Gaussian(1.0, metric=[1.0, 2.0]),
        Linear() * ProductLaplace(1.0),
    ):
        assert not is_rotation_invariant(kernel)


def test_bases_hold_the_asked_energy():
    random = np.random.default_rng(0)
    frame = np.linalg.qr(random.normal(size=(6, 6)))[0]
    first = random.normal(size=(40, 2)) * [1.0, 0.1] @ frame[:2]
    X = np.vstack([first, random.normal(size=(40, 3)) @ frame[2:5], np.zeros((2, 6))])
    labels = np.repeat([0, 1, 2], [40, 40, 2])
    bases = subspace_bases(X, labels, 4, 1.0)
    assert [len(basis) for basis in bases] == [2, 3, 0, 0]
    np.testing.assert_allclose(bases[1].T @ bases[1], frame[2:5].T @ frame[2:5], atol=1e-12)
    assert [len(basis) for basis in subspace_bases(X, labels, 2, 0.9)] == [1, 3]
