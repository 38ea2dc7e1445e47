"""Landmarks and views: one set for all, one for each view, or all elements of the tuples; where these coincide."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer
from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.exceptions import InvalidParameterError
from mercer.kernels import Gaussian
from mercer.views import GaussianNoise
from tests.examples_of import numbers

X = numbers(80, 3)
OTHER = X + 0.3 * numbers(80, 3, seed=5)
OPTIONS = {
    "kernel": Gaussian(1.5),
    "bandwidth": None,
    "n_landmarks": 20,
    "n_components": 4,
    "random_state": 0,
    "ridge": 0.01,
}
FEW = Steps(epochs=3, batch_size=40)


def fitted(tuples, *views, loss="spectral_contrastive", **options):
    return KernelEmbedding(loss, landmark_tuples=tuples, **{**OPTIONS, **options}).fit_views(*views)


def likeness(model, rows=X):
    Z = model.transform(rows)
    return Z @ Z.T


@pytest.mark.parametrize("loss", ["spectral_contrastive", "simple_contrastive", "simclr"])
def test_with_equal_views_all_three_are_one(loss):
    """m rows of A each: `all` has half as many different landmarks, and is what `shared` is on these."""
    shared, by_view = (fitted(tuples, X, X, loss=loss, **solver(loss)) for tuples in ("shared", "by_view"))
    assert_allclose(likeness(by_view), likeness(shared), rtol=1e-5, atol=1e-7)
    every = fitted("all", X, X, loss=loss, **solver(loss))
    rows = np.unique(every.landmarks_, axis=0)
    assert len(rows) == 10
    alone = KernelEmbedding(
        loss, **{**OPTIONS, "n_landmarks": None, "landmarks": every.landmarks_[:10], **solver(loss)}
    )
    assert_allclose(likeness(every), likeness(alone.fit_views(X, X)), rtol=1e-4, atol=1e-6)


def solver(loss):
    return {"solver": FEW} if loss == "simclr" else {}


def test_by_view_compares_each_view_with_landmarks_of_its_kind():
    """The naive way: K_A and K_B side by side, the optimum of the spectral contrastive loss by its formula."""
    model = fitted("by_view", X, OTHER, bias="none")
    sets = np.split(model.landmarks_, 2)
    assert all((row == X).all(axis=1).any() for row in sets[0])
    assert all((row == OTHER).all(axis=1).any() for row in sets[1])
    K = [Gaussian(1.5).matrix(view, Z) for view, Z in zip((X, OTHER), sets, strict=True)]
    K_mm = sum(Gaussian(1.5).matrix(a, b) for a in sets for b in sets) / 4
    second = sum(k.T @ k for k in K) / 160 + 0.01 * K_mm
    cross = (K[0].T @ K[1] + K[1].T @ K[0]) / 160
    values, Q = np.linalg.eigh(second)
    root = (Q / np.sqrt(values)) @ Q.T
    rho, V = np.linalg.eigh(root @ cross @ root)
    A = root @ V[:, -4:] * np.sqrt(rho[-4:])
    mean = sum(Gaussian(1.5).matrix(X, Z) for Z in sets) / 2
    expected = mean @ A
    assert_allclose(likeness(model), expected @ expected.T, rtol=1e-4, atol=1e-5)
    assert model.coefficients_.shape == (40, 4)
    assert_allclose(model.coefficients_[:20], model.coefficients_[20:])


@pytest.mark.parametrize("tuples", ["shared", "by_view", "all"])
def test_views_may_be_drawn_trained_on_saved_and_added_to(tuples, tmp_path):
    model = KernelEmbedding("simclr", landmark_tuples=tuples, augment=GaussianNoise(0.2), solver=FEW, **OPTIONS).fit(X)
    assert len(model.landmarks_) == {"shared": 20, "by_view": 40, "all": 20}[tuples]
    mercer.save(model, tmp_path / "model")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model").transform(X), model.transform(X))
    assert model.influence(X).shape == (80, len(model.landmarks_))
    parts = KernelEmbedding(landmark_tuples=tuples, augment=GaussianNoise(0.2), **OPTIONS)
    assert np.isfinite(parts.partial_fit(X).partial_fit(OTHER).transform(X)).all()


def test_landmarks_that_are_no_rows_have_no_views():
    with pytest.raises(InvalidParameterError, match="landmark_tuples='by_view'.*given"):
        fitted("by_view", X, OTHER, landmarks=X[:5], n_landmarks=None)
    with pytest.raises(InvalidParameterError, match="landmark_tuples='all'.*kernel_pca"):
        KernelEmbedding("kernel_pca", landmark_tuples="all", **OPTIONS).fit(X)
