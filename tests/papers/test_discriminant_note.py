"""The note's discriminants against (13) and (14) written out with matrices, and what happens as λ goes to 0."""

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from sklearn.base import clone

from mercer import KernelDiscriminant
from mercer.papers import kernel_discriminant
from tests.examples_of import numbers

N, CLASSES, BANDWIDTH = 40, 3, 1.5
Y = np.arange(N) % CLASSES
X = numbers(N, 2, seed=3) + 0.8 * Y[:, None]
NEW = numbers(7, 2, seed=4)


def laplace(A, B):
    """A kernel whose matrix is far from singular, so that loops keep their digits."""
    return np.array([[np.exp(-np.linalg.norm(a - b) / BANDWIDTH) for b in B] for a in A])


def centering(n):
    return np.eye(n) - np.ones((n, n)) / n


def note(lambda_, regularizer, center, k):
    """(13), one component after another, each with zero covariance to those before; ratios and alpha in columns."""
    K = laplace(X, X)
    if center:  # "replacing every occurrence of K and K^(y) with K C_n and K^(y) C_n"; the norm is that of C K C
        R = centering(N) @ K @ centering(N) if regularizer == "rkhs" else np.eye(N)
        K = K @ centering(N)
    else:
        R = K if regularizer == "rkhs" else np.eye(N)
    total = K.T @ centering(N) @ K
    within = sum(K[c == Y].T @ centering((c == Y).sum()) @ K[c == Y] for c in range(CLASSES)) + lambda_ * R
    alphas, ratios = [], []
    for _ in range(k):
        constraints = np.array([alpha @ total for alpha in alphas]).reshape(len(alphas), N)
        free = null_space(constraints) if alphas else np.eye(N)
        # The constant vector is in the null space of both when centered; a direction without a denominator is left out.
        denominator = free.T @ within @ free
        values, vectors = np.linalg.eigh(denominator)
        free = free @ vectors[:, values > 1e-9 * values.max()]
        mu, found = eigh(free.T @ total @ free, free.T @ within @ free)
        ratios.append(mu[-1])
        alphas.append(free @ found[:, -1])
    return np.array(ratios), np.array(alphas).T


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
def test_components_are_those_of_the_note(regularizer, center):
    options = {"kernel": "laplace", "bandwidth": BANDWIDTH, "n_components": 2}
    model = kernel_discriminant(0.05, regularizer=regularizer, center=center, **options).fit(X, Y)
    ratios, A = note(0.05, regularizer, center, 2)
    np.testing.assert_allclose(model.ratios_, ratios, rtol=1e-8)
    K = laplace(NEW, X)
    expected = (K - laplace(X, X).mean(axis=0)) @ centering(N) @ A if center else K @ A  # (14), (11)
    ours = model.transform(NEW)
    scales = (ours * expected).sum(axis=0) / (expected**2).sum(axis=0)  # the note scales nothing
    np.testing.assert_allclose(ours, expected * scales, atol=1e-6)


@pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
def test_it_is_the_default_where_settings_agree(regularizer):
    printed = kernel_discriminant(0.05, regularizer=regularizer, bandwidth=BANDWIDTH).fit(X, Y)
    default = KernelDiscriminant("gaussian", bandwidth=BANDWIDTH, ridge=0.05, regularizer=regularizer).fit(X, Y)
    np.testing.assert_allclose(printed.transform(NEW), default.transform(NEW), rtol=0, atol=1e-8)
    np.testing.assert_allclose(printed.predict_proba(NEW), default.predict_proba(NEW), rtol=0, atol=1e-8)
    assert clone(printed).get_params()["n_landmarks"] is None


@pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
def test_as_lambda_goes_to_zero_class_ratios_grow_like_one_over_lambda_and_the_rest_come_up_to_one(regularizer):
    lambdas = np.array([1e-4, 1e-5, 1e-6])
    wanted = {"regularizer": regularizer, "kernel": "laplace", "bandwidth": 1.0, "n_components": 6}
    ratios = np.array([kernel_discriminant(lambda_, **wanted).fit(X, Y).ratios_ for lambda_ in lambdas])
    grown = lambdas[:, None] * ratios[:, : CLASSES - 1]
    np.testing.assert_allclose(grown[1:], grown[:-1], rtol=0.02)
    below = 1.0 - ratios[:, CLASSES - 1 :]
    assert (below > 0).all()
    np.testing.assert_allclose(below[1:] / below[:-1], 0.1, rtol=0.02)
