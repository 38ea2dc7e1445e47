"""Kernel discriminants against the note `kernel-discriminant`: its identities, its problems the long way, its laws."""

import numpy as np
import pytest
import scipy.linalg
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

import mercer
from mercer import KernelDiscriminant, Mahalanobis
from mercer.exceptions import DataWarning, NumericalWarning
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.supervised.discriminant_core import (
    Groups,
    double_centred,
    exact_discriminants,
    landmark_basis,
    unregularized_discriminants,
    variance_ratios,
)
from mercer.supervised.landmark_rows import LandmarkRows

both_regularizers = pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
centred_or_not = pytest.mark.parametrize("center", [True, False])


def problem(n=60, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, 3)) + 1.2 * np.eye(classes, 3)[y], y


def matrices(center, n=60, classes=3):
    """K, and T, W and C of the note."""
    X, y = problem(n, classes)
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
    """Reference [2]: each maximiser on the null space of the constraints that those before it set."""
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
@centred_or_not
@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("n_components", [2, 5])
def test_equals_the_constrained_solver_one_component_at_a_time(regularizer, center, ridge, n_components):
    K, T, W, y = matrices(center)
    R = np.eye(60) if regularizer == "identity" else K
    B = W + ridge * R
    found = solve(K, y, ridge, regularizer, n_components, center)
    # On the complement of K's null space (centring makes one), which no value depends on.
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
@centred_or_not
def test_components_are_uncorrelated_with_unit_regularised_within_variance(regularizer, center):
    X, y = problem(90)
    model = KernelDiscriminant(ridge=0.3, regularizer=regularizer, center=center, n_components=4).fit(X, y)
    covariance = np.cov(model.transform(X).T, bias=True)
    np.testing.assert_allclose(covariance, np.diag(model.ratios_), atol=1e-8 * model.ratios_[0])
    Z = model.transform(X)
    within = sum(((Z[y == c] - Z[y == c].mean(0)) ** 2).sum(0) for c in range(3)) / 90
    np.testing.assert_allclose(model.variance_ratios_, np.diag(covariance) / within, rtol=1e-8)
    assert (np.diff(model.ratios_) <= 0).all()


def test_centring_on_new_points():
    """(14), written out."""
    X, y = problem()
    new = np.random.default_rng(5).normal(size=(7, 3))
    model = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X, y)
    K, C = Gaussian(1.5).matrix(X), np.eye(60) - 1 / 60
    A = solve(C @ K @ C, y, 0.1, "identity", 2).alpha.T
    K_new = Gaussian(1.5).matrix(new, X)
    expected = (K_new - np.ones((7, 1)) @ np.ones((1, 60)) @ K / 60) @ C @ A.T
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-8)
    np.testing.assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-9)


# ---- laws ------------------------------------------------------------------------------------------------------


def same_up_to_signs(A, B, atol=1e-6):
    np.testing.assert_allclose(A * np.sign((A * B).sum(axis=0)), B, atol=atol * np.abs(B).max())


def test_rotation_and_scale_change_nothing():
    X, y = problem()
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    plain = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X, y)
    rotated = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X @ Q + 5.0, y)
    scaled = KernelDiscriminant(Gaussian(150.0), ridge=0.1).fit(100 * X, y)
    same_up_to_signs(rotated.transform(X @ Q + 5.0), plain.transform(X))
    same_up_to_signs(scaled.transform(100 * X), plain.transform(X))


@centred_or_not
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
@centred_or_not
def test_all_rows_as_landmarks_are_exact(regularizer, center):
    X, y = problem(80)
    options = {"ridge": 0.1, "regularizer": regularizer, "center": center, "n_components": 3}
    exact = KernelDiscriminant(Gaussian(1.5), **options).fit(X, y)
    landmarks = KernelDiscriminant(Gaussian(1.5), n_landmarks=80, **options).fit(X, y)
    same_up_to_signs(landmarks.transform(X), exact.transform(X), atol=1e-5)
    np.testing.assert_allclose(landmarks.ratios_, exact.ratios_, rtol=1e-5)
    np.testing.assert_allclose(landmarks.variance_ratios_, exact.variance_ratios_, rtol=1e-4)
    np.testing.assert_allclose(landmarks.predict_proba(X), exact.predict_proba(X), atol=0.02)


@both_regularizers
@centred_or_not
def test_landmark_errors_equal_n_refits(regularizer, center):
    """The errors by which landmarks choose the ridge are those of refits of the indicators with an intercept."""
    X, y = problem(30)
    groups, Z = groups_of(y), X[:8]
    rows = LandmarkRows(X, Z, Gaussian(1.5), center, 1.0, None)
    basis = landmark_basis(*rows.sums(groups), groups.counts, rows.regularizer(regularizer))
    errors, leverages = rows.compare(basis, groups, [0.1, 1.0])
    k = Gaussian(1.5).matrix(X, Z)
    R = Gaussian(1.5).matrix(Z)
    if center:
        k, R = k - k.mean(axis=1, keepdims=True), double_centred(torch.from_numpy(R)).numpy()
    R = np.eye(8) if regularizer == "identity" else R
    Y = np.eye(3)[y] - np.bincount(y) / 30
    for j, ridge in enumerate([0.1, 1.0]):
        naive = 0.0
        for i in range(30):
            rest = np.arange(30) != i
            mean, target = k[rest].mean(axis=0), Y[rest].mean(axis=0)
            centred = k[rest] - mean
            w = np.linalg.pinv(centred.T @ centred + ridge * R) @ centred.T @ (Y[rest] - target)
            naive += ((Y[i] - target - (k[i] - mean) @ w) ** 2).sum() / 30
        assert float(errors[j]) == pytest.approx(naive, rel=1e-6)
    assert ((leverages > 0) & (leverages < 1)).all()


def test_working_memory_changes_nothing():
    X, y = problem(200)
    small, large = (
        KernelDiscriminant(n_landmarks=50, random_state=0, working_memory=memory).fit(X, y) for memory in (0.01, 100)
    )
    same_up_to_signs(small.transform(X), large.transform(X))
    assert small.ridge_ == large.ridge_


@both_regularizers
@centred_or_not
def test_left_out_values_are_those_of_refits(regularizer, center):
    """Each component regresses a score on the rows; without row i, that regression predicts its left-out value."""
    K, _, _, y = matrices(center=False, n=40)
    C = np.eye(40) - 1 / 40
    K_used = C @ K @ C if center else K
    ridge = 0.2
    found = solve(K_used, y, ridge, regularizer, 2, center)
    P = np.eye(3)[y] / np.bincount(y) @ np.eye(3)[y].T
    scores = (found.values - found.values.mean(0)) / found.ratios + P @ found.values
    gram = K_used if regularizer == "rkhs" else K_used @ K_used
    naive = np.zeros((40, 2))
    for i in range(40):
        rest = np.arange(40) != i
        border = np.ones((39, 1)) if center else np.zeros((39, 0))
        k = border.shape[1]
        A = np.block([[gram[np.ix_(rest, rest)] + ridge * np.eye(39), border], [border.T, np.zeros((k, k))]])
        solution = np.linalg.solve(A, np.vstack([scores[rest], np.zeros((k, 2))]))
        naive[i] = gram[i, rest] @ solution[:39] + (solution[39] if center else 0.0)
    np.testing.assert_allclose(found.left_out, naive, atol=1e-6 * np.abs(naive).max())


# ---- the estimator ---------------------------------------------------------------------------------------------


def test_within_class_spread_is_honest():
    """Spread of new rows is as the model says, where on the rows of the fit it is far smaller."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X / 16, y, random_state=0, stratify=y)
    model = KernelDiscriminant(bandwidth="auto", random_state=0).fit(train, y_train)

    def spread(Z, labels):
        return sum(((Z[labels == c] - Z[labels == c].mean(0)) ** 2).sum() for c in range(10)) / len(Z)

    said, new = np.trace(model.covariance_), spread(model.transform(test), y_test)
    assert 0.75 < said / new < 1.33
    assert spread(model.transform(train), y_train) < 0.5 * new
    assert model.score(test, y_test) > 0.985
    assert log_loss(y_test, model.predict_proba(test)) < 0.08


@both_regularizers
@pytest.mark.parametrize("n_landmarks", [None, 60])
def test_automatic_choices_beat_bad_ones(regularizer, n_landmarks):
    X, y = load_wine(return_X_y=True)
    train, test, y_train, y_test = train_test_split(scale(X), y, random_state=1, stratify=y)
    options = {"regularizer": regularizer, "n_landmarks": n_landmarks, "random_state": 0}
    model = KernelDiscriminant(bandwidth="auto", **options).fit(train, y_train)
    assert model.score(test, y_test) >= 0.95
    assert isinstance(model.ridge_, float)
    bad = KernelDiscriminant(Gaussian(0.05), ridge=10.0, **options).fit(train, y_train)
    assert bad.score(test, y_test) < model.score(test, y_test)


def test_precomputed_equals_the_kernel():
    X, y = problem(70)
    kernel = Laplace(2.0)
    direct = KernelDiscriminant(kernel, random_state=0).fit(X[:50], y[:50])
    given = KernelDiscriminant("precomputed", random_state=0).fit(kernel.matrix(X[:50]), y[:50])
    assert given.ridge_ == direct.ridge_
    np.testing.assert_allclose(given.predict_proba(kernel.matrix(X[50:], X[:50])), direct.predict_proba(X[50:]))


def test_a_learned_metric_goes_in():
    X, y = problem()
    noisy = np.hstack([X, 10 * np.random.default_rng(0).normal(size=(60, 4))])
    metric = Mahalanobis.from_weights([1, 1, 1, 0, 0, 0, 0])
    with_metric = KernelDiscriminant(Gaussian(1.5, metric=metric), ridge=0.1).fit(noisy, y)
    plain = KernelDiscriminant(Gaussian(1.5), ridge=0.1).fit(X, y)
    same_up_to_signs(with_metric.transform(noisy), plain.transform(X))


def test_float32_stays_float32_and_close():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    double = KernelDiscriminant(ridge=0.01).fit(X, y)
    single = KernelDiscriminant(ridge=0.01).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X.astype(np.float32)), double.predict_proba(X), atol=1e-2)


def test_classes_of_strings_and_two_classes():
    X, y = problem(classes=2)
    names = np.array(["no", "yes"])[y]
    model = KernelDiscriminant(random_state=0).fit(X, names)
    assert model.transform(X).shape == (60, 1)
    assert set(model.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "yes")
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_priors_move_the_boundary():
    X, y = problem(classes=2)
    even = KernelDiscriminant(ridge=0.5, priors=[0.5, 0.5]).fit(X, y)
    tilted = KernelDiscriminant(ridge=0.5, priors=[0.01, 0.99]).fit(X, y)
    assert (tilted.predict(X) == 1).sum() > (even.predict(X) == 1).sum()
    assert (KernelDiscriminant(ridge=0.5, priors=[0.0, 1.0]).fit(X, y).predict(X) == 1).all()


def test_the_temperature_is_the_best_on_left_out_values():
    from mercer.supervised.gaussian_classes import best_temperature, log_joint

    random = np.random.default_rng(0)
    of_row = random.integers(0, 3, 400)
    squares = random.chisquare(2, size=(400, 3)) * 10
    squares[np.arange(400), of_row] *= 0.5
    priors = np.array([0.2, 0.3, 0.5])

    def loss(temperature):
        joint = log_joint(squares, priors, temperature)
        return np.mean(np.logaddexp.reduce(joint, axis=1) - joint[np.arange(400), of_row])

    best = best_temperature(squares, priors, of_row)
    assert loss(best) < min(loss(best * 1.2), loss(best / 1.2), loss(1.0))


def test_add_classes_by_their_centroids():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    old, new = y < 8, y >= 8
    model = KernelDiscriminant(bandwidth="auto", random_state=0).fit(X[old], y[old])
    before = model.transform(X)
    shots = np.concatenate([np.flatnonzero(y == c)[:20] for c in (8, 9)])
    assert model.add_classes(X[shots], y[shots]) is model
    np.testing.assert_array_equal(model.transform(X), before)
    np.testing.assert_array_equal(model.classes_, np.arange(10))
    np.testing.assert_allclose(model.centroids_[8], before[shots[:20]].mean(axis=0))
    assert model.priors_.sum() == pytest.approx(1.0)
    others = np.setdiff1d(np.flatnonzero(new), shots)
    # The map was learned without them: few shots of two new digits, among ten.
    assert model.score(X[others], y[others]) > 0.6
    with pytest.raises(ValueError, match=r"y=.*is not allowed: y must be classes that are not known yet"):
        model.add_classes(X[shots], y[shots])
    with pytest.warns(DataWarning, match=r"\['ten'\]|10"):
        model.add_classes(X[:1], [10])
    assert model.predict(X[:1]) in model.classes_


def test_new_classes_keep_the_order_and_given_priors():
    X, y = problem(classes=2)
    model = KernelDiscriminant(ridge=0.5, priors=[0.5, 0.5]).fit(X, np.array(["b", "d"])[y])
    model.add_classes(X[:4] + 9, ["a", "a", "c", "c"])
    assert list(model.classes_) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(model.priors_, 0.25)


def test_a_class_with_one_row_warns_and_works():
    X, y = problem()
    y = y.copy()
    y[0], X[0] = 7, 9.0
    with pytest.warns(DataWarning, match="have one row each"):
        model = KernelDiscriminant(random_state=0).fit(X, y)
    assert model.predict(X[:1]) == 7


def test_saves_and_loads(tmp_path):
    X, y = problem()
    model = KernelDiscriminant(n_landmarks=20, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 60}, r"n_components=60 is not allowed: .*at most 59 \(the rank, rows - 1\)"),
        ({"n_components": 11, "n_landmarks": 10}, r"n_components=11 .*at most 10 \(the number of landmarks\)"),
        ({"ridge": -1.0}, "ridge=-1.0 is not allowed: .*at least 0"),
        ({"ridge": "best"}, "ridge='best' is not allowed: .*'auto'"),
        ({"regularizer": "l2"}, "regularizer='l2' is not allowed: .*'identity', 'rkhs'"),
        ({"priors": [0.5, 0.5]}, r"priors=\[0.5, 0.5\] is not allowed: .*3 numbers"),
        ({"priors": [1, 1, -1]}, "priors=.*none negative"),
        ({"bandwidth": 0.0}, "bandwidth=0.0 is not allowed: .*above 0"),
        ({"n_landmarks": 0}, "n_landmarks=0 is not allowed"),
        ({"kernel": "precomputed"}, r"X has shape \(60, 3\): fit needs the square kernel matrix"),
        ({"kernel": "sigmoid"}, "kernel='sigmoid' is not allowed"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        KernelDiscriminant(**params).fit(*problem())


def test_bad_data_are_named():
    X, y = problem()
    with pytest.raises(ValueError, match=r"y has 1 class .*at least 2 classes"):
        KernelDiscriminant().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="all rows are equal under the kernel"):
        KernelDiscriminant(Gaussian(1.0), ridge=0.1).fit(np.ones((60, 3)), y)
    with pytest.raises(ValueError, match="one class a row"):
        KernelDiscriminant(ridge=0.1).fit(X, y).add_classes(X, [7])


def test_singular_kernel_matrices_work():
    """Duplicates and a linear kernel of low rank: fewer directions, no failure."""
    X, y = problem()
    doubled = KernelDiscriminant(Gaussian(1.5), ridge=1e-8).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert np.isfinite(doubled.transform(X)).all()
    with pytest.warns(DataWarning, match="n_components=10, but only 3 directions have variance"):
        low = KernelDiscriminant(Linear(), ridge=0.1, n_components=10).fit(X, y)
    assert low.transform(X).shape == (60, 3)


# ---- faults found in review ------------------------------------------------------------------------------------


def test_the_search_on_a_part_of_the_rows_is_centred_on_that_part(monkeypatch):
    """Class shares in the drawn rows differ from the whole's; that must not count as an error of small ridges."""
    from mercer.supervised import discriminant_choice

    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(discriminant_choice, "SEARCH_ROWS", 300)
    searched = KernelDiscriminant(Gaussian(2.0), regularizer="rkhs", random_state=0).fit(X[:900] / 16, y[:900])
    whole = KernelDiscriminant(Gaussian(2.0), regularizer="rkhs", random_state=0).fit(X[300:600] / 16, y[300:600])
    assert searched.ridge_ <= 3.2 * whole.ridge_
    K = Gaussian(2.0).matrix(X[:900] / 16)
    given = KernelDiscriminant("precomputed", regularizer="rkhs", random_state=0).fit(K, y[:900])
    assert given.ridge_ <= 3.2 * whole.ridge_


def test_no_ridge_is_the_limit_of_small_ones():
    X, y = problem(90)
    none, tiny = (KernelDiscriminant(Linear(), ridge=ridge).fit(X, y) for ridge in (0.0, 1e-9))
    np.testing.assert_allclose(none.covariance_, tiny.covariance_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.abs(none.centroids_), np.abs(tiny.centroids_), rtol=1e-3, atol=1e-3)
    for options in ({"n_landmarks": 20}, {"bandwidth": "auto"}):
        with pytest.raises(ValueError, match=r"ridge=0.0 is not allowed: .*above 0 with landmarks"):
            KernelDiscriminant(ridge=0.0, **options).fit(X, y)


def test_as_many_components_as_classes():
    X, y = problem(400, classes=2)
    assert KernelDiscriminant(ridge=1e-3, n_components=2).fit(X, y).transform(X).shape == (400, 2)


@pytest.mark.parametrize("n_landmarks", [None, 50])
def test_signs_do_not_depend_on_the_order_of_the_rows(n_landmarks):
    X, y = problem(240, classes=2)
    first = KernelDiscriminant(ridge=0.1, n_landmarks=n_landmarks, landmarks="kmeans++").fit
    landmarks = np.arange(240)
    maps = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(landmarks)
        maps.append(first(X[order], y[order]).centroids_[0, 0] > 0)
    assert len(set(maps)) == 1


def test_the_model_keeps_its_own_rows():
    X, y = problem()
    model = KernelDiscriminant(ridge=0.1).fit(X, y)
    before = model.transform(X.copy())
    rows = X.copy()
    X -= 5.0
    np.testing.assert_array_equal(model.transform(rows), before)


def test_classes_missing_from_the_search_do_not_matter(monkeypatch):
    from mercer.supervised import discriminant_choice

    X, y = problem(200)
    y = y.copy()
    y[:12] = 3 + np.arange(12) // 2
    monkeypatch.setattr(discriminant_choice, "SEARCH_ROWS_OF_LANDMARKS", 40)
    model = KernelDiscriminant(n_landmarks=30, bandwidth="auto", random_state=0).fit(X, y)
    assert len(model.classes_) == 9


def test_kinds_of_new_classes_must_match():
    X, y = problem()
    with pytest.raises(ValueError, match=r"y=.*of the kind of the known classes"):
        KernelDiscriminant(ridge=0.1).fit(X, y).add_classes(X[:4], ["a", "a", "b", "b"])
