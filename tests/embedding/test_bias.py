"""The bias γ of f(x) = A^T k(x) + γ: one meaning for all losses; and the loss of kernel PCA, centered or not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import KernelPCA

from mercer import KernelEmbedding
from mercer.embedding import Exact, Steps
from mercer.kernels import Gaussian
from mercer.losses import simclr, spectral_contrastive
from mercer.training import Adam, Cosine
from tests.examples_of import numbers

X = numbers(120, 3)
VIEWS = [X + 0.2 * numbers(120, 3, seed=1 + j) for j in range(2)]
OPTIONS = {"kernel": Gaussian(1.5), "bandwidth": None, "n_landmarks": 25, "n_components": 4, "random_state": 0}
STEPS = Steps(epochs=30, batch_size=120, optimizer=Adam(1e-2), schedule=Cosine(0.0), validation_fraction=0.0)


def fitted(loss, **options):
    return KernelEmbedding(loss, **{**OPTIONS, **options}).fit_views(*VIEWS)


def objective_of_kernel_pca(model, rows):
    """E |φ(x) - c - W^T W (φ(x) - c)|^2 with every inner product written out; c is what the bias takes away."""
    K_mm = model.kernel_.matrix(model.landmarks_)
    K, A = model.kernel_.matrix(rows, model.landmarks_), model.coefficients_
    v = np.zeros(len(K_mm)) if model.center_ is None else model.center_
    centered = K - v @ K_mm
    f = centered @ A
    squares = model.kernel_.diagonal(rows) - 2.0 * K @ v + v @ K_mm @ v
    return np.mean(squares - 2.0 * (f * f).sum(axis=1) + (f @ (A.T @ K_mm @ A) * f).sum(axis=1))


@pytest.mark.parametrize("bias", ["centered", "learned", "none"])
def test_the_loss_of_kernel_pca_is_its_objective(bias):
    model = KernelEmbedding("kernel_pca", bias=bias, ridge=0.01, **OPTIONS).fit(X)
    assert_allclose(model.loss_, objective_of_kernel_pca(model, X), rtol=1e-8)
    assert_allclose(model.score(X), -model.loss_, rtol=1e-8)
    new = numbers(40, 3, seed=7)
    assert_allclose(model.score(new), -objective_of_kernel_pca(model, new), rtol=1e-8)


def test_the_loss_of_centered_kernel_pca_is_the_variance_that_is_left():
    """With all rows as landmarks it is scikit-learn's: the eigenvalues of the centered matrix that are not kept."""
    model = KernelEmbedding("kernel_pca", Gaussian(1.5), n_landmarks=120, n_components=4, ridge=0.0, random_state=0)
    peer = KernelPCA(kernel="rbf", gamma=0.5 / 1.5**2).fit(X)
    assert_allclose(model.fit(X).loss_, peer.eigenvalues_[4:].sum() / len(X), rtol=1e-4)


@pytest.mark.parametrize("regularizer", ["covariance", "tikhonov"])
def test_the_spectral_optimum_with_a_learned_bias_is_that_with_a_constant_feature(regularizer):
    """By the formula, on z and 1 side by side, without a penalty on the 1; L-BFGS over A and γ gets no lower."""
    ridge = 0.01
    model = fitted("spectral_contrastive", bias="learned", ridge=ridge, solver=Exact(regularizer))
    K_mm = model.kernel_.matrix(model.landmarks_)
    B = np.linalg.inv(np.linalg.cholesky(K_mm)).T
    K = [np.c_[model.kernel_.matrix(view, model.landmarks_) @ B, np.ones(120)] for view in VIEWS]
    penalty = np.diag(np.r_[np.full(25, ridge), 0.0])
    second, cross = sum(k.T @ k for k in K) / 240, (K[0].T @ K[1] + K[1].T @ K[0]) / 240
    if regularizer == "covariance":
        second = second + penalty
    else:
        cross = cross - penalty / 2
    values, Q = np.linalg.eigh(second)
    root = (Q / np.sqrt(values)) @ Q.T
    rho, V = np.linalg.eigh(root @ cross @ root)
    W = root @ V[:, -4:] * np.sqrt(np.maximum(rho[-4:], 0.0))
    found = np.concatenate([model.transform(view) for view in VIEWS])
    expected = np.concatenate(K) @ W
    assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-4, atol=1e-5 * np.abs(expected @ expected.T).max())
    assert_allclose(found[:, 0], 1.0, atol=1e-8)
    views = [torch.from_numpy(model.transform(view)) for view in VIEWS]
    assert_allclose(model.loss_, float(spectral_contrastive(*views)), rtol=1e-8)
    assert model.loss_ < fitted("spectral_contrastive", ridge=ridge, solver=Exact(regularizer)).loss_


def test_losses_that_do_not_depend_on_the_bias_keep_the_centered_one():
    for loss in ("simple_contrastive", "kernel_pca"):
        centered, learned = (fitted(loss, bias=bias) for bias in ("centered", "learned"))
        assert_allclose(learned.coefficients_, centered.coefficients_)
        assert_allclose(learned.bias_, centered.bias_)
        assert_array_equal(fitted(loss, bias="none").bias_, 0.0)


def test_steps_learn_the_bias_where_the_loss_depends_on_it():
    """Centers of cosines matter to SimCLR: with a bias that is learned it gets lower, and the bias moves."""
    centered, learned, none = (fitted("simclr", bias=bias, solver=STEPS) for bias in ("centered", "learned", "none"))
    assert_allclose(np.mean([centered.transform(view).mean(axis=0) for view in VIEWS], axis=0), 0.0, atol=1e-6)
    assert np.abs(np.mean([learned.transform(view).mean(axis=0) for view in VIEWS], axis=0)).max() > 1e-2
    assert_array_equal(none.bias_, 0.0)
    losses = [float(simclr(*(torch.from_numpy(m.transform(view)) for view in VIEWS))) for m in (centered, learned)]
    assert losses[1] < losses[0]
    assert learned.loss_ < centered.loss_


@pytest.mark.parametrize("preconditioner", ["identity", "kernel", "gauss_newton"])
def test_every_preconditioner_leaves_the_bias_its_own_gradient(preconditioner):
    one = replace(STEPS, epochs=3, preconditioner=preconditioner)
    still = fitted("simclr", bias="centered", solver=one)
    assert not np.allclose(fitted("simclr", bias="learned", solver=one).bias_, still.bias_)
