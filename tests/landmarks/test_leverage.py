"""Ridge leverage scores: two estimators against the exact ones, each where it is good; draws by them; the ridge."""

import numpy as np
import pytest
import torch

from mercer import GPRegressor, KernelDiscriminant, Nystrom, RFMRegressor
from mercer.exceptions import ConvergenceWarning
from mercer.kernels import Custom, Gaussian, Laplace, Linear
from mercer.landmarks import KERNEL_METHODS, choose_landmarks, leverage
from mercer.landmarks import choice as landmarks
from mercer.landmarks.leverage import (
    draw_by_scores,
    exact_scores,
    hutchinson_scores,
    recursive_scores,
    ridge_of_dimension,
)
from tests.examples_of import KERNELS, numbers


def smoother(kernel, X, ridge):
    """K (K + ridge n I)^-1 as it is written."""
    K = kernel.matrix(np.asarray(X, dtype=np.float64))
    return K @ np.linalg.inv(K + ridge * len(K) * np.eye(len(K)))


def naive_scores(kernel, X, ridge):
    return np.diag(smoother(kernel, X, ridge))


def naive_hutchinson(kernel, X, ridge, signs):
    """The columns of Pi o (K Z), (K + ridge n I) Z = Pi, added up as in section 3.3 of the paper; here their mean."""
    K = kernel.matrix(X)
    Z = np.linalg.solve(K + ridge * len(K) * np.eye(len(K)), signs)
    return (signs * (K @ Z)).sum(axis=1) / signs.shape[1]


def naive_score_beside(K, j, sampled, chances, rho):
    """The score of row j in a weighted sample of rows, of which j itself is one with a weight of 1."""
    others = [(i, c) for i, c in zip(sampled, chances, strict=True) if i != j]
    rows = [i for i, _ in others] + [j]
    noise = np.diag([rho * c for _, c in others] + [rho])
    beside = K[j, rows]
    return (K[j, j] - beside @ np.linalg.solve(K[np.ix_(rows, rows)] + noise, beside)) / rho


def outliers(n=400, n_outliers=20, seed=0):
    """A tight cluster, and a few rows far from it and from each other; these come first."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) * 0.1
    X[:n_outliers] += random.normal(size=(n_outliers, 4)) * 10.0
    return X


DATA = {
    "normal": lambda n: numbers(n, 5),
    "heavy tails": lambda n: np.random.default_rng(0).standard_t(2, size=(n, 5)),
    "outliers": outliers,
}
ESTIMATORS = {
    "hutchinson": hutchinson_scores,
    "recursive": lambda *args, **options: recursive_scores(*args, n_sampled=40, **options),
}

# ---- exact --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_exact_scores_are_the_diagonal_of_the_smoother(kernel, ridge):
    X = numbers(30, 4)
    scores = exact_scores(KERNELS[kernel], X, ridge)
    np.testing.assert_allclose(scores, naive_scores(KERNELS[kernel], X, ridge), atol=1e-9)
    assert scores.min() > 0
    assert scores.max() < 1


def test_scores_of_copies_and_of_rows_alone():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [100.0], [200.0]])
    np.testing.assert_allclose(exact_scores(Gaussian(1.0), X, 1e-9), [0.25] * 4 + [1.0] * 2, rtol=1e-7)
    # Alone, k / (k + ridge n); copies, k / (c k + ridge n).
    np.testing.assert_allclose(exact_scores(Gaussian(1.0), X, 1 / 6), [0.2] * 4 + [0.5] * 2)


def test_float32_rows_have_float64_scores():
    X = numbers(40, 3).astype(np.float32) + 100
    for scores in (exact_scores(Gaussian(1.0), X, 1e-6), hutchinson_scores(Gaussian(1.0), X, 1e-2, random_state=0)):
        assert scores.dtype == np.float64
    expected = naive_scores(Gaussian(1.0), X, 1e-6)
    np.testing.assert_allclose(exact_scores(Gaussian(1.0), X, 1e-6), expected, atol=1e-8)


# ---- Hutchinson ---------------------------------------------------------------------------------------------------


def signs_of(seed, n, n_probes):
    return 2.0 * np.random.RandomState(seed).randint(2, size=(n, n_probes)) - 1.0


@pytest.mark.parametrize("preconditioner_rows", [5, 60])
def test_hutchinson_is_the_papers_estimate(monkeypatch, preconditioner_rows):
    monkeypatch.setattr(leverage, "PRECONDITIONER_ROWS", preconditioner_rows)
    X, kernel = numbers(60, 2), Laplace(1.0)
    naive = naive_hutchinson(kernel, X, 0.002, signs_of(3, 60, 200))
    assert (naive > 0.05).all()
    assert (naive < 1).all()
    scores = hutchinson_scores(kernel, X, 0.002, n_probes=200, tolerance=1e-10, random_state=3)
    np.testing.assert_allclose(scores, naive, atol=1e-8)
    # What the default tolerance leaves is small beside the noise, sqrt(l (1 - l) / s).
    loose = hutchinson_scores(kernel, X, 0.002, n_probes=200, random_state=3)
    np.testing.assert_allclose(loose, naive, atol=0.1 * (0.25 / 200) ** 0.5)


def test_hutchinson_is_unbiased_with_the_variance_it_claims():
    X, kernel = numbers(40, 2), Laplace(1.0)
    M = smoother(kernel, X, 0.005)
    estimates = np.array([hutchinson_scores(kernel, X, 0.005, n_probes=50, random_state=seed) for seed in range(150)])
    variance = ((M**2).sum(axis=1) - np.diag(M) ** 2) / 50
    assert (variance <= np.diag(M) * (1 - np.diag(M)) / 50).all()
    errors = (estimates.mean(axis=0) - np.diag(M)) / np.sqrt(variance / 150)
    assert np.abs(errors).max() < 4
    assert 0.7 < np.sqrt(np.mean(errors**2)) < 1.3
    np.testing.assert_allclose(estimates.var(axis=0), variance, rtol=0.5)


def test_hutchinson_is_close_where_the_effective_dimension_is_large():
    X, kernel = numbers(300, 5), Laplace(2.0)
    ridge = ridge_of_dimension(kernel, X, 100)
    exact = exact_scores(kernel, X, ridge)
    scores = hutchinson_scores(kernel, X, ridge, n_probes=256, random_state=0)
    assert np.corrcoef(scores, exact)[0, 1] > 0.9
    assert np.sqrt(np.mean((scores / exact - 1) ** 2)) < 0.12
    assert scores.sum() == pytest.approx(exact.sum(), rel=0.02)


def test_impossible_estimates_are_moved_to_the_nearest_score():
    """Few probes, small effective dimension: some estimates are negative, some above what a score can be."""
    X, kernel, ridge = numbers(200, 3), Gaussian(3.0), 0.05
    naive = naive_hutchinson(kernel, X, ridge, signs_of(0, 200, 2))
    scores = hutchinson_scores(kernel, X, ridge, n_probes=2, tolerance=1e-10, random_state=0)
    lower, upper = 1 / (200 + 200 * ridge), 1 / (1 + 200 * ridge)
    assert (naive < 0).sum() > 20
    assert (naive > upper).sum() > 2
    np.testing.assert_allclose(scores, np.clip(naive, lower, upper), atol=1e-8)
    exact = naive_scores(kernel, X, ridge)
    assert lower < exact.min() < exact.max() < upper


def test_bounds_are_those_of_each_row():
    """A kernel whose diagonal is not constant: rows of length 0 have a score of 0, the others one above 0."""
    X = numbers(50, 3) * np.linspace(0, 3, 50)[:, None]
    exact = exact_scores(Linear(), X, 0.1)
    for estimate in ESTIMATORS.values():
        scores = estimate(Linear(), X, 0.1, random_state=0)
        diagonal = (X**2).sum(axis=1)
        assert scores[0] == 0
        assert (scores[1:] > 0).all()
        assert (scores <= diagonal / (diagonal + 5.0)).all()
        assert (exact <= diagonal / (diagonal + 5.0) + 1e-12).all()


def test_preconditioner_saves_steps(monkeypatch):
    steps = []

    def spy(*args, **options):
        solution = solve(*args, **options)
        steps.append(solution.steps)
        return solution

    solve = leverage.conjugate_gradients
    monkeypatch.setattr(leverage, "conjugate_gradients", spy)
    X, kernel = numbers(300, 5), Gaussian(3.0)
    ridge = ridge_of_dimension(kernel, X, 50)
    for rows in (1, 100, 300):
        monkeypatch.setattr(leverage, "PRECONDITIONER_ROWS", rows)
        hutchinson_scores(kernel, X, ridge, n_probes=4, random_state=0)
    assert steps[0] > 3 * steps[1]
    assert steps[2] <= 2


def test_too_few_steps_warn():
    with pytest.warns(ConvergenceWarning, match="max_steps=2 at a relative residual"):
        hutchinson_scores(Laplace(1.0), numbers(600, 3), 1e-7, n_probes=2, max_steps=2, random_state=0)


# ---- recursive ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_recursive_scores_of_few_rows_are_exact(kernel):
    X = numbers(30, 4)
    scores = recursive_scores(KERNELS[kernel], X, 1e-2, n_sampled=30, random_state=0)
    np.testing.assert_allclose(scores, naive_scores(KERNELS[kernel], X, 1e-2), atol=1e-9)


@pytest.mark.parametrize("rows", [np.arange(40), np.array([31, 3, 4, 20, 7])])
def test_scores_through_a_sample_count_each_row_once(rows):
    X, kernel, rho = numbers(40, 3), Gaussian(1.5), 0.3
    sampled, chances = np.array([20, 3, 35, 11, 4]), np.array([0.2, 1.0, 0.05, 0.6, 0.9])
    scores = leverage._scores_through(kernel, X, rows, sampled, chances, rho, 1e-3)
    K = kernel.matrix(X)
    expected = [naive_score_beside(K, j, sampled, chances, rho) for j in rows]
    np.testing.assert_allclose(scores, expected, rtol=1e-8)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace()], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("dimension", [8, 30])
def test_recursive_is_close_where_the_effective_dimension_is_small(data, kernel, dimension):
    X = DATA[data](700)
    kernel = kernel.resolved(X)
    ridge = ridge_of_dimension(kernel, X, dimension, 0)
    exact = exact_scores(kernel, X, ridge)
    for seed in range(3):
        scores = recursive_scores(kernel, X, ridge, n_sampled=max(80, 4 * dimension), random_state=seed)
        ratios = scores / exact
        assert np.corrcoef(scores, exact)[0, 1] > 0.93
        assert ratios.min() > 0.5
        assert ratios.max() < 3
        assert np.sqrt(np.mean((ratios - 1) ** 2)) < 0.5
        assert 0.9 < scores.sum() / exact.sum() < 1.3


def test_each_estimator_is_the_better_one_where_it_should_be():
    X, kernel = numbers(600, 5), Laplace(2.0)

    def errors(dimension, n_sampled):
        ridge = ridge_of_dimension(kernel, X, dimension, 0)
        exact = exact_scores(kernel, X, ridge)
        by_signs = hutchinson_scores(kernel, X, ridge, random_state=0)
        by_sample = recursive_scores(kernel, X, ridge, n_sampled=n_sampled, random_state=0)
        return [np.sqrt(np.mean((scores / exact - 1) ** 2)) for scores in (by_signs, by_sample)]

    by_signs, by_sample = errors(dimension=10, n_sampled=60)
    assert by_sample < 0.25 * by_signs
    by_signs, by_sample = errors(dimension=400, n_sampled=60)
    assert by_signs < 0.5 * by_sample


def test_larger_samples_come_closer():
    X, kernel = numbers(1000, 5), Gaussian(3.0)
    ridge = ridge_of_dimension(kernel, X, 30, 0)
    exact = exact_scores(kernel, X, ridge)
    errors = [
        np.mean(
            [
                np.abs(recursive_scores(kernel, X, ridge, n_sampled=s, random_state=seed) / exact - 1).mean()
                for seed in range(3)
            ]
        )
        for s in (60, 240, 1000)
    ]
    assert errors[1] < 0.7 * errors[0]
    assert errors[2] < 1e-8


def test_every_sample_stands_for_the_rows_it_was_drawn_for(monkeypatch):
    """Halves and halves of halves, each seen once; and 1 / chance adds up to the number of rows, but for luck."""
    levels = []

    def spy(kernel, X, rows, sampled, chances, rho, working_memory):
        levels.append((len(rows), len(sampled), (1 / chances).sum() / len(rows)))
        return through(kernel, X, rows, sampled, chances, rho, working_memory)

    through = leverage._scores_through
    monkeypatch.setattr(leverage, "_scores_through", spy)
    recursive_scores(Gaussian(3.0), numbers(801, 4), 1e-3, n_sampled=110, random_state=0)
    sizes, sampled, stands_for = zip(*levels, strict=True)
    assert sizes == (201, 401, 801)
    assert sampled == (101, 110, 110)
    np.testing.assert_allclose(stands_for, 1.0, rtol=0.3)


def test_a_sample_of_one_row_will_do():
    scores = recursive_scores(Gaussian(1.0), numbers(50, 2), 1e-2, n_sampled=1, random_state=0)
    assert ((scores > 0) & (scores < 1)).all()


# ---- all estimators -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_reproducible_and_drawn_anew(name):
    X = numbers(120, 3)
    first = ESTIMATORS[name](Gaussian(1.0), X, 1e-2, random_state=0)
    np.testing.assert_array_equal(first, ESTIMATORS[name](Gaussian(1.0), X, 1e-2, random_state=0))
    assert np.abs(first - ESTIMATORS[name](Gaussian(1.0), X, 1e-2, random_state=1)).max() > 1e-6


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_block_is_larger_than_the_working_memory(name):
    """The kernel matrix of all rows is never there, nor a block that is larger than allowed."""
    shapes = []

    def spied(X, Z):
        shapes.append((len(X), len(Z)))
        return torch.exp(-torch.cdist(X, Z))

    X = numbers(600, 3)
    scores = ESTIMATORS[name](Custom(spied), X, 1e-2, random_state=0, working_memory=0.5)
    inner = 40 if name == "recursive" else leverage.PRECONDITIONER_ROWS
    assert max(rows * columns for rows, columns in shapes if rows != columns or rows > inner) * 8 <= 0.5 * 2**20
    assert max(rows for rows, columns in shapes if columns == 600 or name == "recursive") < 600
    whole = ESTIMATORS[name](Laplace(1.0), X, 1e-2, random_state=0, working_memory=1e3)
    np.testing.assert_allclose(scores, whole, rtol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_tensors_and_memory_maps_have_the_same_scores(name, tmp_path):
    X = numbers(150, 3)
    np.save(tmp_path / "X.npy", X)
    expected = ESTIMATORS[name](Gaussian(1.0), X, 1e-2, random_state=0)
    for source in (torch.from_numpy(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        np.testing.assert_allclose(ESTIMATORS[name](Gaussian(1.0), source, 1e-2, random_state=0), expected, rtol=1e-9)


# ---- the ridge ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [0.5, 5, 80])
def test_ridge_gives_the_dimension(dimension):
    X = numbers(200, 4)
    for kernel in (Gaussian(1.0), 7.0 * Laplace(2.0)):
        assert exact_scores(kernel, X, ridge_of_dimension(kernel, X, dimension)).sum() == pytest.approx(
            dimension, rel=1e-6
        )


@pytest.mark.parametrize("data", ["normal", "heavy tails"])
def test_ridge_from_a_sample_gives_about_the_dimension(data):
    X = DATA[data](800)
    for kernel, dimension in ((Gaussian(2.0), 10), (Laplace(3.0), 20)):
        ridge = ridge_of_dimension(kernel, X, dimension, 0)
        assert exact_scores(kernel, X, ridge).sum() == pytest.approx(dimension, rel=0.2)


def test_ridge_from_a_sample_stays_within_what_the_sample_can_say(monkeypatch):
    monkeypatch.setattr(leverage, "RIDGE_ROWS", (50, 100))
    X = numbers(400, 4)
    assert ridge_of_dimension(Laplace(1.0), X, 90, 0) == ridge_of_dimension(Laplace(1.0), X, 25, 0)
    assert ridge_of_dimension(Laplace(1.0), X, 20, 0) > ridge_of_dimension(Laplace(1.0), X, 25, 0)


def test_ridge_where_the_kernel_has_fewer_dimensions():
    """The scores are then those of ordinary least squares, h_ii of the hat matrix."""
    X = numbers(50, 3)
    ridge = ridge_of_dimension(Linear(), X, 20)
    assert ridge == pytest.approx(1e-10 * np.linalg.eigvalsh(X @ X.T)[-1] / 50)
    hat = np.diag(X @ np.linalg.pinv(X))
    np.testing.assert_allclose(exact_scores(Linear(), X, ridge), hat, atol=1e-5)
    for estimate in ESTIMATORS.values():
        assert np.isfinite(estimate(Linear(), X, ridge, random_state=0)).all()
    assert ridge_of_dimension(Linear(), np.zeros((5, 2)), 2) == 1.0
    assert ridge_of_dimension(Gaussian(1.0), np.ones((5, 2)), 3) == pytest.approx(1e-10)


# ---- draws --------------------------------------------------------------------------------------------------------


def test_draws_have_the_chances_of_the_scores():
    scores = np.array([0.9, 0.05, 0.1, 0.2, 0.0, 0.15])  # 3 x 0.9 / 1.4 is above 1: the first is sure
    expected = np.array([1.0, *(2 * scores[1:] / 0.5)])
    random = np.random.RandomState(0)
    counts = np.zeros(6)
    for _ in range(4000):
        drawn, chances = draw_by_scores(scores, 3, random)
        assert len(set(drawn)) == len(drawn) == 3
        np.testing.assert_allclose(chances, expected[drawn])
        counts[drawn] += 1
    np.testing.assert_allclose(counts / 4000, expected, atol=4 * (0.25 / 4000) ** 0.5)
    assert counts[0] == 4000
    assert counts[4] == 0


def test_draws_without_scores_have_equal_chances():
    drawn, chances = draw_by_scores(np.zeros(10), 5, np.random.RandomState(0))
    np.testing.assert_allclose(chances, 0.5)
    assert len(set(drawn)) == 5


def test_draws_come_in_all_combinations():
    """The comb is laid over the rows in random order, so that neighbors may be drawn together."""
    random = np.random.RandomState(0)
    pairs = {tuple(sorted(draw_by_scores(np.ones(4), 2, random)[0])) for _ in range(100)}
    assert len(pairs) == 6


# ---- landmarks ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["exact", "estimated"])
def few_rows(request, monkeypatch):
    if request.param == "estimated":
        monkeypatch.setattr(landmarks, "EXACT_ROWS", 0)
        monkeypatch.setattr(landmarks, "SAMPLED_ROWS", (20, 60))


@pytest.mark.parametrize("method", KERNEL_METHODS)
@pytest.mark.usefixtures("few_rows")
def test_outliers_are_drawn_far_more_often_than_by_equal_chances(method):
    X = outliers(400, 20)
    hits = [(choose_landmarks(X, 30, method, kernel=Gaussian(1.0), random_state=seed) < 20).sum() for seed in range(5)]
    assert min(hits) >= 16  # equal chances: 1.5
    assert (choose_landmarks(X, 30, "uniform", random_state=0) < 20).sum() <= 5


@pytest.mark.parametrize("method", KERNEL_METHODS)
def test_copies_share_a_chance(method):
    """Five distinct rows, one of them 96 times: it has the chance of one, not of none and not of 96."""
    X = np.repeat(np.arange(5.0) * 100, [1, 1, 1, 1, 96])[:, None]
    random = np.random.RandomState(0)
    counts = np.zeros(5)
    for _ in range(600):
        chosen = choose_landmarks(X, 2, method, kernel=Gaussian(1.0), ridge=1e-3, random_state=random)
        assert len(set(X[chosen, 0])) == 2
        counts[(X[chosen, 0] / 100).astype(int)] += 1
    np.testing.assert_allclose(counts / 600, 0.4, atol=0.1)


def test_rows_that_follow_where_copies_were_drawn_are_drawn_by_their_scores_too(monkeypatch):
    scores = np.array([1.0] * 10 + [0.5] + [1e-4] * 20)
    monkeypatch.setattr(landmarks, "exact_scores", lambda *args, **options: scores)
    X = np.array([0.0] * 10 + [*range(1, 22)])[:, None]
    for seed in range(20):
        chosen = choose_landmarks(X, 2, "leverage", kernel=Gaussian(1.0), random_state=seed)
        assert chosen[0] < 10
        assert chosen[1] == 10


@pytest.mark.parametrize("method", KERNEL_METHODS)
@pytest.mark.usefixtures("few_rows")
def test_rows_that_the_kernel_does_not_see_come_last(method):
    X = np.concatenate([np.zeros((1, 2)), numbers(39, 2)])
    for seed in range(5):
        assert 0 not in choose_landmarks(X, 39, method, kernel=Linear(), random_state=seed)
    assert len(choose_landmarks(X, 40, method, kernel=Linear(), random_state=0)) == 40


@pytest.mark.parametrize(("method", "estimator"), [("leverage", "recursive"), ("leverage_hutchinson", "hutchinson")])
def test_which_scores_are_used(monkeypatch, method, estimator):
    """Up to EXACT_ROWS the exact ones; then the method's own, from a sample of two rows a landmark within bounds."""
    calls = []
    for name in ("exact", "recursive", "hutchinson"):

        def scores(kernel, X, ridge, name=name, n_sampled=None, **options):
            calls.append((name, ridge, n_sampled))
            return np.ones(len(X))

        monkeypatch.setattr(landmarks, f"{name}_scores", scores)
    monkeypatch.setattr(landmarks, "EXACT_ROWS", 50)
    monkeypatch.setattr(landmarks, "SAMPLED_ROWS", (12, 40))
    options = {"kernel": Gaussian(1.0), "random_state": 0}
    X = numbers(51, 3)
    choose_landmarks(X[:50], 5, method, ridge=0.25, **options)
    for wanted in (5, 8, 30):
        choose_landmarks(X, wanted, method, ridge=0.25, **options)
    choose_landmarks(X, 51, method, ridge=0.25, **options)
    sampled = [12, 16, 40] if estimator == "recursive" else [None] * 3
    assert calls == [("exact", 0.25, None), *((estimator, 0.25, s) for s in sampled)]
    calls.clear()
    choose_landmarks(X, 10, method, **options)
    assert calls[0][1] == ridge_of_dimension(Gaussian(1.0), X, 5)


@pytest.mark.parametrize("method", KERNEL_METHODS)
def test_errors_name_the_parameter(method):
    X = numbers(20, 2)
    with pytest.raises(ValueError, match=f"kernel=None is not allowed: kernel must be given if landmarks='{method}'"):
        choose_landmarks(X, 5, method)
    with pytest.raises(ValueError, match="kernel='rbf' is not allowed"):
        choose_landmarks(X, 5, method, kernel="rbf")
    for ridge in (0.0, -1.0, np.nan, "auto"):
        with pytest.raises(ValueError, match="ridge=.* is not allowed: .*above 0"):
            choose_landmarks(X, 5, method, kernel=Gaussian(1.0), ridge=ridge)
    with pytest.raises(ValueError, match="landmarks=.* is not allowed: .*'uniform' or row indices if kernel='precom"):
        Nystrom("precomputed", landmarks=method).fit(np.eye(20))


def test_short_hands_and_median_bandwidths_are_resolved():
    X = numbers(60, 3)
    chosen = choose_landmarks(X, 10, "leverage", kernel="gaussian", random_state=0)
    kernel = Gaussian().resolved(X)
    np.testing.assert_array_equal(chosen, choose_landmarks(X, 10, "leverage", kernel=kernel, random_state=0))


# ---- estimators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", landmarks.METHODS)
def test_nystrom_draws_its_landmarks_by_its_own_kernel(method):
    """The rows of the median bandwidth are drawn before leverage scores, which need it, and after all else."""
    X = numbers(1100, 3)
    model = Nystrom(n_landmarks=15, landmarks=method, random_state=0).fit(X)
    random = np.random.RandomState(0)
    kernel = Gaussian()
    if method in KERNEL_METHODS:
        kernel = kernel.resolved(X, random)
    chosen = choose_landmarks(X, 15, method, kernel=kernel, random_state=random)
    np.testing.assert_array_equal(model.landmark_indices_, chosen)
    assert model.kernel_ == kernel.resolved(X, random)


@pytest.mark.parametrize("method", KERNEL_METHODS)
@pytest.mark.parametrize(
    "estimator",
    [
        KernelDiscriminant(Gaussian(1.0), ridge=0.1),
        RFMRegressor(Gaussian(1.0), metric="identity", warp="none", bandwidth=None, standardize=False),
        GPRegressor(Gaussian(1.0), metric="identity", warp="none", bandwidth=None, standardize=False),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_pass_their_kernel_on(estimator, method, monkeypatch):
    seen = []

    def spy(kernel, X, ridge, **options):
        seen.append(kernel)
        return exact_scores(kernel, X, ridge, **options)

    monkeypatch.setattr(landmarks, "exact_scores", spy)
    X = outliers(120, 10)
    y = np.arange(120) % 2
    estimator.set_params(n_landmarks=15, landmarks=method, random_state=0).fit(X, y)
    assert seen
    assert all(kernel == Gaussian(1.0) for kernel in seen)
