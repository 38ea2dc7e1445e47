"""Kernel discriminants against the note `kernel-discriminant`: its identities, its problems the long way, its laws."""

import numpy as np
import pytest
import scipy.linalg
import torch
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss

from mercer import KernelDiscriminant
from mercer.discriminant import left_out
from mercer.discriminant.directions import exact_discriminants, unregularized_discriminants
from mercer.discriminant.groups import Groups, double_centered, variance_ratios
from mercer.discriminant.landmark_directions import (
    class_components,
    landmark_basis,
    landmark_discriminants,
    n_class_components,
)
from mercer.discriminant.landmark_rows import LandmarkRows
from mercer.discriminant.left_out import precision_of_leverages
from mercer.exceptions import NumericalWarning
from mercer.kernels import Gaussian, Linear
from tests.examples_of import labeled, same_up_to_signs

both_regularizers = pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
centered_or_not = pytest.mark.parametrize("center", [True, False])


def matrices(center, n=60, classes=3, apart=0.0):
    """K, and T, W and C of the note."""
    X, y = labeled(n, classes)
    X = X + apart * np.eye(classes, 3)[y]
    C = np.eye(n) - 1 / n
    K = Gaussian(1.5).matrix(X)
    K = C @ K @ C if center else K
    W = sum(K[y == c].T @ (np.eye(sum(y == c)) - 1 / sum(y == c)) @ K[y == c] for c in range(classes))
    return K, K.T @ C @ K, W, y


def groups_of(y):
    return Groups.from_index(torch.from_numpy(np.asarray(y)), int(max(y)) + 1)


def solve(K, y, ridge, regularizer, n_components, center=True):
    found = exact_discriminants(torch.from_numpy(K), groups_of(y), ridge, regularizer, n_components, intercept=center)
    return found._replace(alpha=found.alpha.numpy(), values=found.values.numpy(), ratios=found.ratios.numpy())


def one_at_a_time(T, B, n_components):
    """Reference [2]: each maximizer on the null space of the constraints that those before it set."""
    found = []
    for _ in range(n_components):
        N = scipy.linalg.null_space(np.array([T @ a for a in found])) if found else np.eye(len(T))
        _values, vectors = scipy.linalg.eigh(N.T @ T @ N, N.T @ B @ N)
        found.append(N @ vectors[:, -1])
    return np.array(found).T


# ---- the identities of the note --------------------------------------------------------------------------------


def test_covariances_in_coordinates():
    """(1) by loops equals (5) to (8)."""
    K, T, W, y = matrices(center=False)
    alpha, beta = np.random.default_rng(1).normal(size=(2, 60))
    phi, psi = K @ alpha, K @ beta
    total = within = 0.0
    for i in range(60):
        total += (phi[i] - phi.mean()) * (psi[i] - psi.mean()) / 60
    for c in range(3):
        inside = y == c
        for i in np.flatnonzero(inside):
            within += (phi[i] - phi[inside].mean()) * (psi[i] - psi[inside].mean())
    assert total == pytest.approx(alpha @ T @ beta / 60)  # (7)
    assert within == pytest.approx(alpha @ W @ beta)  # (5), summed over the classes
    U = torch.from_numpy(phi)[:, None]
    residual = (U - groups_of(y).project(U))[:, 0].numpy()
    assert residual @ residual == pytest.approx(alpha @ W @ alpha)  # (6)
    assert float(variance_ratios(U, groups_of(y))[0]) == pytest.approx((alpha @ T @ alpha) / (alpha @ W @ alpha))


def test_law_of_total_variance():
    """(9) and (10): total = within + between, so that total over within is one more than between over within."""
    K, _T, W, y = matrices(center=False)
    alpha = np.random.default_rng(2).normal(size=60)
    phi = K @ alpha
    means = np.array([phi[y == c].mean() for c in range(3)])[y]
    assert phi.var() == pytest.approx(alpha @ W @ alpha / 60 + means.var())
    ratio = float(variance_ratios(torch.from_numpy(phi)[:, None], groups_of(y))[0])
    assert ratio - 1 == pytest.approx(means.var() / (alpha @ W @ alpha / 60))


@both_regularizers
@centered_or_not
@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("n_components", [2, 5])
def test_equals_the_constrained_solver_one_component_at_a_time(regularizer, center, ridge, n_components):
    K, T, W, y = matrices(center)
    R = np.eye(60) if regularizer == "identity" else K
    B = W + ridge * R
    found = solve(K, y, ridge, regularizer, n_components, center)
    # On the complement of K's null space (centering makes one), which no value depends on.
    values, U = np.linalg.eigh(K)
    U = U[:, values > 1e-10 * values.max()]
    long_way = U @ one_at_a_time(U.T @ T @ U, U.T @ B @ U, n_components)
    ratios = np.diag(long_way.T @ T @ long_way) / np.diag(long_way.T @ B @ long_way)
    np.testing.assert_allclose(found.ratios, ratios, rtol=1e-5)
    for ours, theirs in zip(found.values.T, (K @ long_way).T, strict=True):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.alpha.T @ B @ found.alpha / 60, np.eye(n_components), atol=1e-6)
    np.testing.assert_allclose(found.alpha.T @ T @ found.alpha / 60, np.diag(found.ratios), atol=1e-6 * ratios[0])
    np.testing.assert_allclose(K @ found.alpha, found.values, atol=1e-8 * np.abs(found.values).max())


def test_lanczos_and_dense_routes_agree():
    K, _, _, y = matrices(center=True, n=240)
    few, many = solve(K, y, 0.1, "rkhs", 2), solve(K, y, 0.1, "rkhs", 7)
    np.testing.assert_allclose(few.ratios, many.ratios[:2], rtol=1e-8)
    np.testing.assert_allclose(few.values, many.values[:, :2], atol=1e-5)


@both_regularizers
@centered_or_not
def test_components_are_uncorrelated_with_unit_regularized_within_variance(regularizer, center):
    X, y = labeled(90)
    model = KernelDiscriminant(ridge=0.3, regularizer=regularizer, center=center, n_components=4).fit(X, y)
    covariance = np.cov(model.transform(X).T, bias=True)
    np.testing.assert_allclose(covariance, np.diag(model.ratios_), atol=1e-8 * model.ratios_[0])
    Z = model.transform(X)
    within = sum(((Z[y == c] - Z[y == c].mean(0)) ** 2).sum(0) for c in range(3)) / 90
    np.testing.assert_allclose(model.variance_ratios_, np.diag(covariance) / within, rtol=1e-8)
    assert (np.diff(model.ratios_) <= 0).all()


def test_centering_on_new_points():
    """(14), written out."""
    X, y = labeled()
    new = np.random.default_rng(5).normal(size=(7, 3))
    model = KernelDiscriminant(Gaussian(1.5), ridge=0.1, regularizer="identity").fit(X, y)
    K, C = Gaussian(1.5).matrix(X), np.eye(60) - 1 / 60
    A = solve(C @ K @ C, y, 0.1, "identity", 2).alpha.T
    K_new = Gaussian(1.5).matrix(new, X)
    expected = (K_new - np.ones((7, 1)) @ np.ones((1, 60)) @ K / 60) @ C @ A.T
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-8)
    np.testing.assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-9)


# ---- laws ------------------------------------------------------------------------------------------------------


def test_rotation_and_scale_change_nothing():
    X, y = labeled()
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    plain = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X, y)
    rotated = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X @ Q + 5.0, y)
    scaled = KernelDiscriminant(Gaussian(150.0), ridge=0.1).fit(100 * X, y)
    same_up_to_signs(rotated.transform(X @ Q + 5.0), plain.transform(X))
    same_up_to_signs(scaled.transform(100 * X), plain.transform(X))


@centered_or_not
def test_linear_kernel_reproduces_linear_discriminants(center):
    X, y = load_iris(return_X_y=True)
    ours = KernelDiscriminant(Linear(), ridge=0.0, center=center).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    Z = ours.transform(X)
    for a, b in zip(Z.T, theirs.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) == pytest.approx(1.0, abs=1e-7)


def test_no_ridge_and_no_spread_within_warns():
    K, _, _, y = matrices(center=False)
    with pytest.warns(NumericalWarning, match="directions have no variance within the classes"):
        unregularized_discriminants(torch.from_numpy(K), groups_of(y), 2)


@both_regularizers
@centered_or_not
def test_all_rows_as_landmarks_are_exact(regularizer, center):
    X, y = labeled(80)
    options = {"ridge": 0.1, "regularizer": regularizer, "center": center, "n_components": 3}
    exact = KernelDiscriminant(Gaussian(1.5), **options).fit(X, y)
    landmarks = KernelDiscriminant(Gaussian(1.5), n_landmarks=80, **options).fit(X, y)
    same_up_to_signs(landmarks.transform(X), exact.transform(X), atol=1e-5)
    np.testing.assert_allclose(landmarks.ratios_, exact.ratios_, rtol=1e-5)
    np.testing.assert_allclose(landmarks.variance_ratios_, exact.variance_ratios_, rtol=1e-4)
    np.testing.assert_allclose(landmarks.predict_proba(X), exact.predict_proba(X), atol=0.02)


@both_regularizers
@centered_or_not
def test_landmark_left_out_values_are_those_of_refits(regularizer, center):
    """A landmark component regresses its class means with its effective ridge; without row i it predicts row i."""
    X, y = labeled(30)
    X = X + 2 * np.eye(3)[y]
    groups, Z = groups_of(y), X[:8]
    rows = LandmarkRows(X, Z, Gaussian(1.5), center, 1.0, None)
    basis = landmark_basis(*rows.sums(groups), groups.counts, rows.regularizer(regularizer))
    tried = rows.discriminants(basis, groups, [0.1, 1.0], 2)
    k = Gaussian(1.5).matrix(X, Z)
    R = Gaussian(1.5).matrix(Z)
    if center:
        k, R = k - k.mean(axis=1, keepdims=True), double_centered(torch.from_numpy(R)).numpy()
    R = np.eye(8) if regularizer == "identity" else R
    for found, ridge in zip(tried, [0.1, 1.0], strict=True):
        values, mu = found.values.numpy(), found.ratios.numpy()
        assert (mu > 1).all()
        means = np.stack([values[y == c].mean(axis=0) for c in range(3)])[y]
        for c, s in enumerate(mu / (mu - 1)):
            naive = []
            for i in range(30):
                rest = np.arange(30) != i
                mean, target = k[rest].mean(axis=0), means[rest, c].mean()
                gram = (k[rest] - mean).T @ (k[rest] - mean)
                w = np.linalg.pinv(gram + s * ridge * R) @ (k[rest] - mean).T @ (means[rest, c] - target)
                naive.append(s * (target + (k[i] - mean) @ w))
            np.testing.assert_allclose(found.left_out[:, c], naive, atol=1e-6 * np.abs(naive).max())


def test_values_at_some_rows_are_those_of_the_fit_on_all():
    """The basis is that of 90 rows; whether 90 or 20 of them judge, their values and those left out are the same."""
    X, y = labeled(90)
    groups = groups_of(y)
    rows = LandmarkRows(X, X[:30], Gaussian(1.5), True, 1.0, None)
    basis = rows.basis(groups, "rkhs")
    some = np.arange(5, 25)
    everywhere = rows.discriminants(basis, groups, [0.01, 1.0], 2)
    there = rows.of(X[some]).discriminants(basis, groups.of_rows(some), [0.01, 1.0], 2)
    for found, few in zip(everywhere, there, strict=True):
        np.testing.assert_allclose(few.values, found.values[some], atol=1e-10)
        np.testing.assert_allclose(few.left_out, found.left_out[some], atol=1e-10)


def test_smooth_kernels_of_rows_in_single_precision_are_as_good_as_in_double():
    """K_mm of so wide a Gaussian has eigenvalues down to rounding: sums in float32 would be divided by them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(6000, 4))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.normal(size=6000) > 0).astype(int)
    model = KernelDiscriminant(Gaussian(4.0), n_landmarks=200, ridge=1e-2, random_state=0)
    losses = []
    for precision in (np.float32, np.float64):
        rows = X.astype(precision)
        losses.append(log_loss(y[4000:], model.fit(rows[:4000], y[:4000]).predict_proba(rows[4000:])))
    assert abs(losses[0] - losses[1]) < 5e-3


@pytest.mark.parametrize("ridge", [1e-3, 0.3, 3.0])
def test_components_of_landmarks_are_those_of_the_dense_eigenproblem(ridge):
    """Roots of one variable against scipy's eigenproblem of size r; there are as many above 1 as it says."""
    X, y = labeled(90)
    groups = groups_of(y)
    rows = LandmarkRows(X, X[:30], Gaussian(1.5), True, 1.0, None)
    basis = landmark_basis(*rows.sums(groups), groups.counts, rows.regularizer("rkhs"))
    G = (groups.counts.sqrt()[:, None] * basis.group_means).T.numpy()
    D = np.diag(basis.spread.numpy() + ridge) - G @ G.T
    ratios, vectors = scipy.linalg.eigh(np.diag(basis.spread.numpy()), D)
    above = n_class_components(basis, ridge)
    assert above == (ratios > 1).sum()
    for n_components in (1, 2, 5):
        beta, mu = landmark_discriminants(basis, ridge, n_components)
        np.testing.assert_allclose(mu, ratios[::-1][:n_components], rtol=1e-7)
        beta = beta.numpy()
        np.testing.assert_allclose(beta.T @ D @ beta / 90, np.eye(n_components), atol=1e-6)
        for ours, theirs in zip(beta.T, vectors.T[::-1], strict=False):
            assert abs(ours @ D @ theirs) == pytest.approx(90**0.5, rel=1e-5)


def test_classes_with_equal_roots_keep_orthogonal_components():
    """Means at the corners of a regular triangle: both components have one ratio."""
    spread = torch.tensor([4.0, 4.0, 1.0], dtype=torch.float64)
    angles = torch.arange(3, dtype=torch.float64) * 2 * np.pi / 3
    G = torch.stack([angles.cos(), angles.sin(), torch.zeros_like(angles)])
    beta, mu = class_components(spread, G, 0.5, 2)
    assert float(mu[0]) == pytest.approx(float(mu[1]), rel=1e-9)
    assert float(beta[:, 0] @ beta[:, 1]) == pytest.approx(0.0, abs=1e-9)


def test_working_memory_changes_nothing():
    X, y = labeled(200)
    small, large = (
        KernelDiscriminant(n_landmarks=50, random_state=0, working_memory=memory).fit(X, y) for memory in (0.01, 100)
    )
    same_up_to_signs(small.transform(X), large.transform(X))
    assert small.ridge_ == large.ridge_


def refit_without(gram, targets, ridge, i, intercept):
    """The prediction at row i of the ridge regression of targets on the other rows."""
    rest = np.arange(len(gram)) != i
    border = np.ones((len(gram) - 1, 1)) if intercept else np.zeros((len(gram) - 1, 0))
    k = border.shape[1]
    A = np.block([[gram[np.ix_(rest, rest)] + ridge * np.eye(len(border)), border], [border.T, np.zeros((k, k))]])
    solution = np.linalg.solve(A, np.concatenate([targets[rest], np.zeros(k)]))
    return gram[i, rest] @ solution[: len(border)] + (solution[-1] if intercept else 0.0)


@both_regularizers
@centered_or_not
@pytest.mark.parametrize("ridge", [0.2, 2.0])
def test_left_out_values_are_those_of_refits(regularizer, ridge, center):
    """A component regresses its class means with its effective ridge; without row i that predicts row i."""
    K, _, _, y = matrices(center, n=40, apart=2.0)
    found = solve(K, y, ridge, regularizer, 2, center)
    gram = K if regularizer == "rkhs" else K @ K
    for c, mu in enumerate(found.ratios):
        assert mu > 1
        s, u = mu / (mu - 1), found.values[:, c]
        means = np.array([u[y == of].mean() for of in range(3)])[y] - u.mean() / mu
        smoothed = s * gram @ np.linalg.solve(gram + s * ridge * np.eye(40), means)
        np.testing.assert_allclose(u, smoothed, atol=1e-6 * np.abs(u).max())
        naive = [s * refit_without(gram, means, s * ridge, i, intercept=center) for i in range(40)]
        np.testing.assert_allclose(found.left_out[:, c], naive, atol=1e-6 * np.abs(naive).max())


@both_regularizers
@centered_or_not
def test_left_out_values_of_a_component_without_classes_hold_its_score(regularizer, center):
    K, _, _, y = matrices(center, n=40)
    found = solve(K, y, 5.0, regularizer, 4, center)
    P = np.eye(3)[y] / np.bincount(y) @ np.eye(3)[y].T
    scores = (found.values - found.values.mean(0)) / found.ratios + P @ found.values
    gram = K if regularizer == "rkhs" else K @ K
    assert found.ratios[3] < 1
    naive = np.array([refit_without(gram, scores[:, 3], 5.0, i, intercept=center) for i in range(40)])
    np.testing.assert_allclose(found.left_out[:, 3], naive, atol=1e-6 * np.abs(naive).max())


@both_regularizers
def test_leverages_of_many_rows_follow_those_of_a_part(regularizer, monkeypatch):
    """Every second row says how leverages change with the ridge; exact values differ by some hundredths."""
    K, _, _, y = matrices(center=True, n=300, apart=1.0)
    exact = solve(K, y, 2.0, regularizer, 2)
    monkeypatch.setattr(left_out, "LEVERAGE_ROWS", 150)
    shifted = solve(K, y, 2.0, regularizer, 2)
    assert exact.ratios.min() > 1
    assert exact.ratios.max() < 20
    difference = (shifted.left_out - exact.left_out).abs().amax(dim=0)
    assert (difference > 0).all()
    assert (difference < 0.05 * exact.left_out.abs().amax(dim=0)).all()


def test_leverages_in_float32_are_close(monkeypatch):
    K, _, _, y = matrices(center=True, apart=6.0)
    assert precision_of_leverages(torch.from_numpy(K), 1e-2) == torch.float32
    assert precision_of_leverages(torch.from_numpy(K), 1e-9) is None
    single = solve(K, y, 1e-2, "rkhs", 2)
    monkeypatch.setattr(left_out, "LEVERAGE_ERROR", 0.0)
    double = solve(K, y, 1e-2, "rkhs", 2)
    assert not torch.equal(single.left_out, double.left_out)
    np.testing.assert_allclose(single.left_out, double.left_out, atol=1e-3 * double.left_out.abs().max())
