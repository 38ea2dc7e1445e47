"""Exact optima on landmarks: against losses of embeddings, and against L-BFGS from several starts."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from mercer.embedding.centers import Centers
from mercer.embedding.closed_forms import (
    kernel_pca_loss,
    kernel_pca_optima,
    simple_contrastive_loss,
    simple_contrastive_optima,
    spectral_contrastive_loss,
    spectral_contrastive_optima,
)
from mercer.embedding.moments import add_views, no_moments, shuffled, statistics
from mercer.kernels import Gaussian
from mercer.landmarks.features import principal_coefficients
from mercer.losses import kernel_pca, simple_contrastive, spectral_contrastive
from mercer.views.sources import GivenViews
from tests.examples_of import numbers

N, M, H = 60, 7, 3
KERNEL = Gaussian(1.5)
LOSSES = {
    "spectral": (spectral_contrastive, spectral_contrastive_loss),
    "simple": (simple_contrastive, simple_contrastive_loss),
}


def problem(n_views=2, center=True, dtype=torch.float64):
    """Views of rows, landmarks, and the statistics of the kernel's values between them, in whitened coordinates."""
    X = numbers(N, 2)
    views = [torch.from_numpy(X + 0.3 * numbers(N, 2, seed=1 + j)).to(dtype) for j in range(n_views)]
    Z = torch.from_numpy(X[:M]).to(dtype)
    source = GivenViews(views)
    even, odd = add_views([no_moments(Z), no_moments(Z)], Centers(KERNEL, [Z]), source, seed=0, rows_a_block=35)
    moments = even.plus(odd)
    B = principal_coefficients(KERNEL.matrix(Z.double()))
    origin = moments.mean if center else None
    return views, Z, B, origin, statistics(moments, B, origin), (even, odd)


def embedded(view, Z, B, origin, W):
    K = KERNEL.matrix(view.double(), Z.double())
    return (K if origin is None else K - origin) @ B @ W


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n_views", [2, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_from_moments_is_that_of_the_embeddings(loss, n_views, center):
    of_embeddings, of_moments = LOSSES[loss]
    views, Z, B, origin, stats, _ = problem(n_views, center)
    W = torch.from_numpy(numbers(B.shape[1], H, seed=9))
    expected = of_embeddings(*(embedded(view, Z, B, origin, W) for view in views))
    assert_allclose(of_moments(stats, W), float(expected), rtol=1e-9)


@pytest.mark.parametrize("n_views", [1, 3])
def test_the_loss_of_kernel_pca_from_moments_is_that_of_the_embeddings(n_views):
    views, Z, B, _, stats, _ = problem(n_views, center=False)
    W = torch.from_numpy(numbers(B.shape[1], H, seed=9))
    gram = (B @ W).T @ KERNEL.matrix(Z) @ (B @ W)
    expected = kernel_pca(*(embedded(view, Z, B, None, W) for view in views), gram=gram, diagonal=1.0)
    assert_allclose(kernel_pca_loss(stats, W), float(expected), rtol=1e-9)


def test_moments_are_means_over_rows_views_and_pairs():
    views, Z, B, _, stats, folds = problem(3, center=False)
    K = [KERNEL.matrix(view, Z) @ B for view in views]
    assert_allclose(stats.second, sum(k.T @ k for k in K) / (3 * N), rtol=1e-10, atol=1e-12)
    pairs = sum(K[i].T @ K[j] for i in range(3) for j in range(3) if i != j)
    assert_allclose(stats.cross, pairs / (6 * N), rtol=1e-10, atol=1e-12)
    assert_allclose(stats.mean, sum(k.mean(dim=0) for k in K) / 3, rtol=1e-10)
    assert stats.diagonal == pytest.approx(1.0)
    assert [fold.n_rows for fold in folds] == [13 + 18, 12 + 17]
    rows = [*shuffled(35, 0, 0)[::2].tolist(), *(35 + shuffled(25, 0, 35)[::2]).tolist()]
    assert_allclose(statistics(folds[0], B).mean, sum(k[rows].mean(dim=0) for k in K) / 3, rtol=1e-10)


def test_float32_rows_lose_little():
    exact, rounded = (problem(2, True, dtype)[4] for dtype in (torch.float64, torch.float32))
    assert_allclose(rounded.second, exact.second, atol=2e-5 * float(exact.second.abs().max()))
    assert_allclose(rounded.cross, exact.cross, atol=2e-5 * float(exact.second.abs().max()))


def minimum(objective, shape, starts=6):
    """The smallest value that L-BFGS finds from several starts."""

    def value(w):
        W = torch.from_numpy(w.reshape(shape)).requires_grad_()
        loss = objective(W)
        loss.backward()
        return float(loss.detach()), W.grad.numpy().ravel()

    found = [
        minimize(
            value,
            0.5 * numbers(*shape, seed=20 + s).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-10},
        ).fun
        for s in range(starts)
    ]
    return min(found)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("regularizer", ["covariance", "tikhonov"])
def test_nothing_beats_the_spectral_optimum(regularizer, ridge, center):
    *_, stats, _ = problem(2, center)
    eye = torch.eye(len(stats.second), dtype=torch.float64)

    def objective(W):
        S = stats.second + ridge * eye if regularizer == "covariance" else stats.second
        loss = -2 * (W * (stats.cross @ W)).sum() + (W.T @ S @ W).square().sum()
        return loss + (ridge * W.square().sum() if regularizer == "tikhonov" else 0.0)

    (optimum,) = spectral_contrastive_optima(stats, [ridge], H, regularizer)
    reached, best = float(objective(optimum.W)), minimum(objective, (len(eye), H))
    assert reached <= best + 1e-9
    assert reached == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.01, 0.1])
def test_nothing_beats_the_optimum_of_kernel_pca(ridge):
    *_, stats, _ = problem(1, center=False)

    def objective(W):
        C = W.T @ stats.second @ W
        return stats.diagonal - 2 * C.trace() + ((W.T @ W) * C).sum() + ridge * W.square().sum()

    (optimum,) = kernel_pca_optima(stats, [ridge], H)
    reached, best = float(objective(optimum.W)), minimum(objective, (len(stats.second), H))
    assert reached <= best + 1e-9
    assert reached == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_nothing_orthonormal_beats_the_simple_contrastive_optimum():
    *_, stats, _ = problem(2, center=False)
    (optimum,) = simple_contrastive_optima(stats, [0.0], H)
    assert_allclose(optimum.W.T @ optimum.W, np.eye(H), atol=1e-10)

    def objective(W):
        Q = torch.linalg.qr(W)[0]
        return (Q.T @ stats.mean).square().sum() - (Q * (stats.cross @ Q)).sum()

    reached, best = simple_contrastive_loss(stats, optimum.W), minimum(objective, (len(stats.second), H))
    assert reached <= best + 1e-9
    assert reached == pytest.approx(best, rel=1e-6)


def test_a_path_of_ridges_is_one_optimum_after_another():
    *_, stats, _ = problem()
    ridges = [0.001, 0.1]
    for regularizer in ("covariance", "tikhonov"):
        for path, ridge in zip(spectral_contrastive_optima(stats, ridges, H, regularizer), ridges, strict=True):
            (alone,) = spectral_contrastive_optima(stats, [ridge], H, regularizer)
            assert_allclose(path.W @ path.W.T, alone.W @ alone.W.T, atol=1e-10)
            assert path.ridge == ridge


def test_a_large_ridge_leaves_no_direction():
    *_, stats, _ = problem()
    (optimum,) = spectral_contrastive_optima(stats, [1e3], H, "tikhonov")
    assert optimum.W.shape[1] == 0
    (optimum,) = kernel_pca_optima(stats, [1e3], H)
    assert optimum.W.shape[1] == 0


def test_kernel_pca_without_a_ridge_is_orthonormal_and_ordered():
    *_, stats, _ = problem(1, center=False)
    (optimum,) = kernel_pca_optima(stats, [0.0], H)
    assert_allclose(optimum.W.T @ optimum.W, np.eye(H), atol=1e-10)
    assert (np.diff(optimum.eigenvalues.numpy()) <= 0).all()
    expected = np.linalg.eigvalsh(stats.second.numpy())[::-1][:H]
    assert_allclose(optimum.eigenvalues, expected, rtol=1e-10)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_moments_do_not_depend_on_threads(n_threads):
    """Chunks are summed in their order, whoever has worked them out."""
    X = torch.from_numpy(numbers(90, 2))
    centers = Centers(KERNEL, [X[:M]])
    source = GivenViews([X, X + 0.1])
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        found = add_views([no_moments(X[:M]), no_moments(X[:M])], centers, source, seed=0, rows_a_block=13)
    finally:
        torch.set_num_threads(before)
    one_by_one = [no_moments(X[:M]), no_moments(X[:M])]
    for i in range(0, 90, 13):
        one_by_one = add_views(one_by_one, centers, source.of_rows(slice(i, i + 13)), seed=0)
    for fold, other in zip(found, one_by_one, strict=True):
        assert fold.n_rows == other.n_rows
        assert_allclose(fold.second, other.second, rtol=1e-12)
        assert_allclose(fold.cross, other.cross, rtol=1e-9, atol=1e-12)


def test_moments_along_directions_are_those_of_the_turned_features():
    views, Z, B, origin, stats, _ = problem()
    V = torch.from_numpy(numbers(B.shape[1], 2, seed=3))
    turned = [embedded(view, Z, B, origin, V) for view in views]
    along = stats.along(V)
    assert_allclose(along.second, sum(z.T @ z for z in turned) / (2 * N), rtol=1e-9, atol=1e-12)
    assert_allclose(along.cross, (turned[0].T @ turned[1] + turned[1].T @ turned[0]) / (2 * N), rtol=1e-9, atol=1e-12)
    assert_allclose(along.mean, sum(z.mean(dim=0) for z in turned) / 2, atol=1e-9)
