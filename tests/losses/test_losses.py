"""Losses of embeddings against loops over samples, views and pairs; their laws are in test_losses_gradient.py."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer.kernels import Gaussian
from mercer.losses import kernel_pca, simple_contrastive, spectral_contrastive
from tests.examples_of import numbers


def embeddings(n_views, n=6, h=3):
    return [torch.from_numpy(numbers(n, h, seed=j)) for j in range(n_views)]


def positives(views):
    """f(x)^T f(x+) for every sample and every ordered pair of its views."""
    return [float(a[i] @ b[i]) for a, b in itertools.permutations(views, 2) for i in range(len(a))]


def negatives(views):
    """f(x)^T f(x-) for every pair of views of any two samples."""
    rows = torch.cat(views)
    return [float(a @ b) for a in rows for b in rows]


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_spectral_contrastive_is_its_formula(n_views):
    views = embeddings(n_views)
    expected = -2 * np.mean(positives(views)) + np.mean(np.square(negatives(views)))
    assert_allclose(float(spectral_contrastive(*views)), expected, rtol=1e-12)


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_simple_contrastive_is_its_formula(n_views):
    views = embeddings(n_views)
    assert_allclose(
        float(simple_contrastive(*views)), np.mean(negatives(views)) - np.mean(positives(views)), rtol=1e-12
    )


@pytest.mark.parametrize("n_views", [1, 3])
def test_kernel_pca_is_the_error_of_reconstruction(n_views):
    """|phi - W^T W phi|^2 written out with kernel values alone, sample by sample."""
    Z, A, kernel = numbers(5, 2), numbers(5, 3, seed=1), Gaussian(1.3)
    K = kernel.matrix(Z)
    rows = [numbers(4, 2, seed=2 + j) for j in range(n_views)]
    errors = []
    for x in np.concatenate(rows):
        k = kernel.matrix(x[None], Z)[0]
        weights = A @ (A.T @ k)  # W^T W phi(x) = sum_j weights_j phi(z_j)
        errors.append(kernel.matrix(x[None])[0, 0] - 2 * weights @ k + weights @ K @ weights)
    views = [torch.from_numpy(kernel.matrix(x, Z) @ A) for x in rows]
    loss = kernel_pca(*views, gram=torch.from_numpy(A.T @ K @ A), diagonal=1.0)
    assert_allclose(float(loss), np.mean(errors), rtol=1e-12)
