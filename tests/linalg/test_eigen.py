"""The largest eigenpairs alone, on spectra where LAPACK's choice by index gives too few."""

import numpy as np
import pytest
import torch

import mercer
from mercer.linalg import largest_eigenvalue, top_eigenpairs


def clustered(n, clusters, spread, seed):
    """A symmetric matrix whose eigenvalues lie in clusters, each of so small a spread."""
    random = np.random.default_rng(seed)
    values = random.choice(random.uniform(-1, 1, size=clusters), size=n) + spread * random.normal(size=n)
    vectors = np.linalg.qr(random.normal(size=(n, n)))[0]
    A = (vectors * values) @ vectors.T
    return torch.from_numpy((A + A.T) / 2)


def check(A, k):
    values, vectors = top_eigenpairs(A, k)
    expected = torch.linalg.eigvalsh(A).flip(0)[:k]
    size = float(expected.abs().max()) + 1e-300
    assert len(values) == k
    assert vectors.shape == (len(A), k)
    assert (values - expected).abs().max() < 1e-8 * size
    assert (vectors.T @ vectors - torch.eye(k, dtype=A.dtype)).abs().max() < 1e-6
    assert (A @ vectors - vectors * values).abs().max() < 1e-7 * size


def test_a_matrix_near_the_identity_has_all_the_pairs_that_were_asked_for():
    check(torch.eye(900, dtype=torch.float64) + 1e-14, 20)


@pytest.mark.parametrize("spread", [0.0, 1e-16, 1e-14, 1e-10])
@pytest.mark.parametrize("clusters", [1, 2, 5])
def test_clustered_spectra_against_the_whole_decomposition(clusters, spread):
    for seed in range(12):
        n = int(np.random.default_rng(seed).integers(30, 120))
        for k in (1, 2, n // 5):
            check(clustered(n, clusters, spread, seed), k)


@pytest.mark.slow
def test_a_thousand_clustered_spectra():
    for seed in range(1000):
        random = np.random.default_rng(seed)
        n = int(random.integers(10, 150))
        A = clustered(n, int(random.integers(1, 6)), float(random.choice([0.0, 1e-16, 1e-14, 1e-12, 1e-8])), seed)
        check(A, int(random.integers(1, n)))


def test_a_few_pairs_have_the_gradient_of_the_whole_decomposition():
    A = clustered(40, 40, 0.1, 0)
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 3)))

    def gradient(pairs_of):
        given = A.clone().requires_grad_()
        values, vectors = pairs_of(given)
        (values[:3].square().sum() + (weights * vectors[:, :3].square()).sum()).backward()
        return given.grad

    expected = gradient(lambda M: [part.flip(-1) for part in torch.linalg.eigh(M)])
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(gradient(lambda M: top_eigenpairs(M, 3)), expected, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        found = top_eigenpairs(A.clone().requires_grad_(), 3)
    assert not found.values.requires_grad


def test_features_of_a_kernel_matrix_near_the_identity():
    X = np.random.default_rng(0).normal(size=(1500, 600))
    nystrom = mercer.Nystrom("gaussian", n_landmarks=900, n_components=20, bandwidth=3.0, random_state=0)
    features = nystrom.fit_transform(X)
    assert features.shape == (1500, 20)
    assert np.isfinite(features).all()


def test_the_largest_eigenvalue_may_be_that_of_any_block():
    n = 400
    random = np.random.default_rng(0)
    half = n // 2
    A = np.zeros((n, n))
    few = random.normal(size=(half, 3))
    A[:half, :half] = 0.1 * few @ few.T  # the largest entry of the diagonal is here, the largest eigenvalue is not
    A[half:, half:] = 0.2
    A = torch.from_numpy(A)
    assert largest_eigenvalue(A) == pytest.approx(float(torch.linalg.eigvalsh(A)[-1]), rel=1e-9)


def test_the_largest_eigenvalue_of_nothing():
    assert largest_eigenvalue(torch.zeros((60, 60), dtype=torch.float64)) == 0.0
