"""The estimator KernelDiscriminant: choices, probabilities, new classes, saving, bad input."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

import mercer
from mercer import KernelDiscriminant, Mahalanobis
from mercer.exceptions import DataWarning
from mercer.kernels import Gaussian, Laplace, Linear
from tests.examples_of import labeled, same_up_to_signs

both_regularizers = pytest.mark.parametrize("regularizer", ["identity", "rkhs"])


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
    X, y = labeled(70)
    kernel = Laplace(2.0)
    direct = KernelDiscriminant(kernel, random_state=0).fit(X[:50], y[:50])
    given = KernelDiscriminant("precomputed", random_state=0).fit(kernel.matrix(X[:50]), y[:50])
    assert given.ridge_ == direct.ridge_
    np.testing.assert_allclose(given.predict_proba(kernel.matrix(X[50:], X[:50])), direct.predict_proba(X[50:]))


def test_a_learned_metric_goes_in():
    X, y = labeled()
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
    X, y = labeled(classes=2)
    names = np.array(["no", "yes"])[y]
    model = KernelDiscriminant(random_state=0).fit(X, names)
    assert model.transform(X).shape == (60, 1)
    assert set(model.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "yes")
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_priors_move_the_boundary():
    X, y = labeled(classes=2)
    even = KernelDiscriminant(ridge=0.5, priors=[0.5, 0.5]).fit(X, y)
    tilted = KernelDiscriminant(ridge=0.5, priors=[0.01, 0.99]).fit(X, y)
    assert (tilted.predict(X) == 1).sum() > (even.predict(X) == 1).sum()
    assert (KernelDiscriminant(ridge=0.5, priors=[0.0, 1.0]).fit(X, y).predict(X) == 1).all()


def test_the_temperature_is_the_best_on_left_out_values():
    from mercer.discriminant.gaussian_classes import best_temperature, log_joint

    random = np.random.default_rng(0)
    of_row = random.integers(0, 3, 400)
    squares = random.chisquare(2, size=(400, 3)) * 10
    squares[np.arange(400), of_row] *= 0.5
    priors = np.array([0.2, 0.3, 0.5])

    def loss(temperature):
        joint = log_joint(squares, priors, temperature)
        return np.mean(np.logaddexp.reduce(joint, axis=1) - joint[np.arange(400), of_row])

    best, lowest = best_temperature(squares, priors, of_row)
    assert lowest == pytest.approx(loss(best))
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
    X, y = labeled(classes=2)
    model = KernelDiscriminant(ridge=0.5, priors=[0.5, 0.5]).fit(X, np.array(["b", "d"])[y])
    model.add_classes(X[:4] + 9, ["a", "a", "c", "c"])
    assert list(model.classes_) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(model.priors_, 0.25)


def test_a_class_with_one_row_warns_and_works():
    X, y = labeled()
    y = y.copy()
    y[0], X[0] = 7, 9.0
    with pytest.warns(DataWarning, match="have one row each"):
        model = KernelDiscriminant(random_state=0).fit(X, y)
    assert model.predict(X[:1]) == 7


def test_saves_and_loads(tmp_path):
    X, y = labeled()
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
        KernelDiscriminant(**params).fit(*labeled())


def test_bad_data_are_named():
    X, y = labeled()
    with pytest.raises(ValueError, match=r"y has 1 class .*at least 2 classes"):
        KernelDiscriminant().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="all rows are equal under the kernel"):
        KernelDiscriminant(Gaussian(1.0), ridge=0.1).fit(np.ones((60, 3)), y)
    with pytest.raises(ValueError, match="one class a row"):
        KernelDiscriminant(ridge=0.1).fit(X, y).add_classes(X, [7])


def test_singular_kernel_matrices_work():
    """Duplicates and a linear kernel of low rank: fewer directions, no failure."""
    X, y = labeled()
    doubled = KernelDiscriminant(Gaussian(1.5), ridge=1e-8).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert np.isfinite(doubled.transform(X)).all()
    with pytest.warns(DataWarning, match="n_components=10, but only 3 directions have variance"):
        low = KernelDiscriminant(Linear(), ridge=0.1, n_components=10).fit(X, y)
    assert low.transform(X).shape == (60, 3)


# ---- faults found in review ------------------------------------------------------------------------------------


def test_the_search_on_a_part_of_the_rows_is_centered_on_that_part(monkeypatch):
    """Class shares in the drawn rows differ from the whole's; that must not count as an error of small ridges."""
    from mercer.discriminant import choice

    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(choice, "SEARCH_ROWS", 300)
    searched = KernelDiscriminant(Gaussian(2.0), regularizer="rkhs", random_state=0).fit(X[:900] / 16, y[:900])
    whole = KernelDiscriminant(Gaussian(2.0), regularizer="rkhs", random_state=0).fit(X[300:600] / 16, y[300:600])
    assert searched.ridge_ <= 3.2 * whole.ridge_
    K = Gaussian(2.0).matrix(X[:900] / 16)
    given = KernelDiscriminant("precomputed", regularizer="rkhs", random_state=0).fit(K, y[:900])
    assert given.ridge_ <= 3.2 * whole.ridge_


def test_no_ridge_is_the_limit_of_small_ones():
    X, y = labeled(90)
    none, tiny = (KernelDiscriminant(Linear(), ridge=ridge).fit(X, y) for ridge in (0.0, 1e-9))
    np.testing.assert_allclose(none.covariance_, tiny.covariance_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(np.abs(none.centroids_), np.abs(tiny.centroids_), rtol=1e-3, atol=1e-3)
    for options in ({"n_landmarks": 20}, {"bandwidth": "auto"}):
        with pytest.raises(ValueError, match=r"ridge=0.0 is not allowed: .*above 0 with landmarks"):
            KernelDiscriminant(ridge=0.0, **options).fit(X, y)


def test_as_many_components_as_classes():
    X, y = labeled(400, classes=2)
    assert KernelDiscriminant(ridge=1e-3, n_components=2).fit(X, y).transform(X).shape == (400, 2)


@pytest.mark.parametrize("n_landmarks", [None, 50])
def test_signs_do_not_depend_on_the_order_of_the_rows(n_landmarks):
    X, y = labeled(240, classes=2)
    first = KernelDiscriminant(ridge=0.1, n_landmarks=n_landmarks, landmarks="kmeans++").fit
    landmarks = np.arange(240)
    maps = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(landmarks)
        maps.append(first(X[order], y[order]).centroids_[0, 0] > 0)
    assert len(set(maps)) == 1


def test_the_model_keeps_its_own_rows():
    X, y = labeled()
    model = KernelDiscriminant(ridge=0.1).fit(X, y)
    before = model.transform(X.copy())
    rows = X.copy()
    X -= 5.0
    np.testing.assert_array_equal(model.transform(rows), before)


def test_classes_missing_from_the_search_do_not_matter(monkeypatch):
    from mercer.discriminant import choice

    X, y = labeled(200)
    y = y.copy()
    y[:12] = 3 + np.arange(12) // 2
    monkeypatch.setattr(choice, "SEARCH_ROWS_OF_LANDMARKS", 40)
    model = KernelDiscriminant(n_landmarks=30, bandwidth="auto", random_state=0).fit(X, y)
    assert len(model.classes_) == 9


def test_kinds_of_new_classes_must_match():
    X, y = labeled()
    with pytest.raises(ValueError, match=r"y=.*of the kind of the known classes"):
        KernelDiscriminant(ridge=0.1).fit(X, y).add_classes(X[:4], ["a", "a", "b", "b"])


# ---- choices ---------------------------------------------------------------------------------------------------


def test_auto_keeps_a_bandwidth_that_the_kernel_has():
    X, y = labeled()
    assert KernelDiscriminant(Gaussian(0.7), random_state=0).fit(X, y).kernel_.bandwidth == 0.7
    assert KernelDiscriminant(bandwidth=0.7, random_state=0).fit(X, y).kernel_.bandwidth == 0.7
    median = Gaussian().resolved(X).bandwidth
    assert KernelDiscriminant(bandwidth="median", random_state=0).fit(X, y).kernel_.bandwidth == median
    assert KernelDiscriminant(Gaussian(), bandwidth=None, random_state=0).fit(X, y).kernel_.bandwidth == median


def test_the_left_out_error_is_that_of_refits():
    from mercer.discriminant.choice import left_out_errors
    from mercer.discriminant.groups import Groups, double_centered

    X, y = labeled(30)
    K = Gaussian(1.5).matrix(X)
    naive = 0.0
    for i in range(30):
        rest = np.arange(30) != i
        mean, k = K[rest][:, rest].mean(axis=0), K[i, rest]
        C = np.eye(29) - 1 / 29
        a = np.linalg.solve(C @ K[np.ix_(rest, rest)] @ C + 0.1 * np.eye(29), C @ np.eye(3)[y][rest])
        naive += ((np.eye(3)[y][i] - np.eye(3)[y][rest].mean(axis=0) - (k - mean) @ C @ a) ** 2).sum() / 30
    groups = Groups.from_index(torch.from_numpy(y), 3)
    error = float(left_out_errors(double_centered(torch.from_numpy(K)), groups, 0.1, "rkhs", True).mean())
    assert error == pytest.approx(naive)


@both_regularizers
def test_the_ridge_gives_the_weakest_component_that_of_the_regression(regularizer):
    """lambda = ridge s, and the component's effective ridge is lambda mu / (mu - 1): the ridge again."""
    from mercer.discriminant.choice import discriminant_ridge
    from mercer.discriminant.directions import exact_discriminants
    from mercer.discriminant.groups import Groups, double_centered
    from mercer.discriminant.left_out import effective_ridges

    X, y = labeled(60)
    K = double_centered(torch.from_numpy(Gaussian(1.5).matrix(X)))
    groups = Groups.from_index(torch.from_numpy(y), 3)
    ridge = discriminant_ridge(K, groups, 2.0, regularizer, 2)
    assert 0.2 < ridge < 2.0
    found = exact_discriminants(K, groups, ridge, regularizer, 2)
    assert float(effective_ridges(ridge, found.ratios)[1]) == pytest.approx(2.0)
    assert discriminant_ridge(K, groups, 1e6, "rkhs", 2) == pytest.approx(1e5)


@pytest.mark.parametrize("regularizer", ["identity", "rkhs"])
def test_noisy_classes_keep_their_directions(regularizer):
    """Where classes overlap the regression wants a large ridge, and (13) with it would give principal components."""
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 600)
    X = np.hstack([0.9 * np.eye(4)[y], np.zeros((600, 4))]) + random.normal(size=(600, 8))
    model = KernelDiscriminant(regularizer=regularizer, random_state=0).fit(X[:400], y[:400])
    assert model.ratios_.min() > 1.0
    assert model.score(X[400:], y[400:]) > 0.35
    assert log_loss(y[400:], model.predict_proba(X[400:])) < np.log(4) - 0.1


def test_class_weight_multiplies_the_priors():
    X, y = labeled(90)
    y = np.where(y == 2, 1, y)
    plain = KernelDiscriminant(ridge=0.5, bandwidth=1.0).fit(X, y)
    balanced = KernelDiscriminant(ridge=0.5, bandwidth=1.0, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(balanced.priors_, 0.5)
    np.testing.assert_array_equal(balanced.transform(X), plain.transform(X))
    given = KernelDiscriminant(ridge=0.5, bandwidth=1.0, priors=[0.5, 0.5], class_weight={0: 3.0, 1: 1.0}).fit(X, y)
    np.testing.assert_allclose(given.priors_, [0.75, 0.25])
    with pytest.raises(ValueError, match="class_weight"):
        KernelDiscriminant(class_weight="even").fit(X, y)


def test_many_rows_get_landmarks(monkeypatch):
    from mercer.discriminant import kernel_discriminant

    X, y = labeled(200)
    monkeypatch.setattr(kernel_discriminant, "EXACT_ROWS", 150)
    monkeypatch.setattr(kernel_discriminant, "AUTO_LANDMARKS", 40)
    assert len(KernelDiscriminant(random_state=0).fit(X, y).basis_) == 40
    assert len(KernelDiscriminant(n_landmarks=None, random_state=0).fit(X, y).basis_) == 200
    assert len(KernelDiscriminant(random_state=0).fit(X[:150], y[:150]).basis_) == 150


def test_rows_of_the_search_do_not_calibrate(monkeypatch):
    """The temperature is that of the rows that the search has not seen, where they are the larger part."""
    from mercer.discriminant import choice, kernel_discriminant
    from mercer.rows import drawn_rows

    judges = []
    describe = kernel_discriminant.gaussian_classes
    monkeypatch.setattr(choice, "SEARCH_ROWS", 60)
    monkeypatch.setattr(
        kernel_discriminant, "gaussian_classes", lambda *args: judges.append(args[4]) or describe(*args)
    )
    searched = []
    monkeypatch.setattr(
        kernel_discriminant, "drawn_rows", lambda *args: searched.append(drawn_rows(*args)) or searched[-1]
    )
    X, y = labeled(200)
    KernelDiscriminant(random_state=0).fit(X, y)
    assert not np.intersect1d(judges[0], searched[0]).size
    assert len(judges[0]) + len(searched[0]) == 200
    KernelDiscriminant(random_state=0).fit(X[:100], y[:100])
    assert len(judges[1]) == 100


def test_a_fit_that_fails_leaves_the_old_one():
    X, y = labeled()
    model = KernelDiscriminant(ridge=0.1, bandwidth=1.0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="all rows are equal"):
        model.fit(np.ones((60, 4)), y + 5)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("n_landmarks", [None, 300])
def test_probabilities_of_new_rows_are_as_sure_as_they_should_be(n_landmarks):
    """The temperature that new rows would have chosen is near the one that left-out rows chose."""
    from mercer.discriminant.gaussian_classes import best_temperature, squared_class_distances

    random = np.random.default_rng(1)
    y = random.integers(0, 3, 3000)
    X = np.eye(3, 6)[y] * 1.2 + random.normal(size=(3000, 6))
    model = KernelDiscriminant(n_landmarks=n_landmarks, random_state=0).fit(X[:800], y[:800])
    squares = squared_class_distances(model.transform(X[800:]), model.centroids_, model.covariance_)
    best, lowest = best_temperature(squares, model.priors_, y[800:])
    assert log_loss(y[800:], model.predict_proba(X[800:])) < lowest + 0.005
    assert 0.75 < model.temperature_ / best < 1.33
