"""Leave-one-out scores against n refits, the choice at a bounded cost, and the climb over a grid."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer import selection
from mercer.kernels import Gaussian, Laplace
from mercer.selection import (
    CRITERIA,
    MOST_STEPS,
    Candidate,
    best,
    climb,
    evaluate,
    evaluate_matrix,
    select,
    squared_stacking_weights,
)
from tests.examples_of import numbers


def problem(n=40, seed=0):
    random = np.random.default_rng(seed)
    X = torch.from_numpy(random.normal(size=(n, 3)))
    y = torch.sin(2 * X[:, 0]) + 0.1 * torch.from_numpy(random.normal(size=n))
    return X, y


def refits(kernel, ridge, X, Y, weights):
    """Predict each row from a fit on the others, and give the variance of a Gaussian process there."""
    K = kernel.matrix(X)
    predictions, variances = torch.zeros_like(Y), torch.zeros(len(X), dtype=Y.dtype)
    for i in range(len(X)):
        rest = torch.arange(len(X)) != i
        A = K[rest][:, rest] + ridge * torch.diag(1 / weights[rest])
        predictions[i] = K[i, rest] @ torch.linalg.solve(A, Y[rest])
        variances[i] = K[i, i] + ridge / weights[i] - K[i, rest] @ torch.linalg.solve(A, K[rest, i])
    return predictions, variances


def naive_scores(predictions, variances, Y, weights):
    share = weights / weights.sum()
    errors = Y - predictions
    s = (share[:, None] * errors**2 / variances[:, None]).sum(0)
    density = torch.distributions.Normal(predictions, (s * variances[:, None]).sqrt()).log_prob(Y)
    right = (predictions.argmax(1) == Y.argmax(1)) if Y.shape[1] > 1 else ((predictions > 0) == (Y > 0))[:, 0]
    return {
        "squared_error": -(share @ (errors**2).mean(1)),
        "log_density": share @ density.mean(1),
        "accuracy": share @ right.double(),
    }


@pytest.mark.parametrize("ridges", [[0.1], [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_scores_equal_n_refits(ridges, weighted, outputs):
    X, y = problem(25)
    Y = torch.stack([y, -y, y.roll(1)][:outputs], dim=1)
    weights = torch.linspace(0.5, 2.0, 25, dtype=torch.float64) if weighted else torch.ones(25, dtype=torch.float64)
    kernel = Gaussian(1.5)
    for criterion in CRITERIA:
        candidates = evaluate(kernel, ridges, X, Y, criterion=criterion, weights=weights if weighted else None)
        assert [c.ridge for c in candidates] == ridges
        for c in candidates:
            expected = naive_scores(*refits(kernel, c.ridge, X, Y, weights), Y, weights)[criterion]
            assert c.score == pytest.approx(float(expected), abs=1e-8)


def test_vectors_and_one_column_agree():
    X, y = problem()
    for criterion in CRITERIA:
        a, b = (evaluate(Laplace(1.0), [0.1], X, t, criterion=criterion)[0].score for t in (y, y[:, None]))
        assert a == pytest.approx(b)


def test_the_density_is_at_its_best_output_scale():
    """The score does not change with the scale of y but for the change of units."""
    X, y = problem()
    one = evaluate(Gaussian(1.0), [0.1], X, y, criterion="log_density")[0].score
    ten = evaluate(Gaussian(1.0), [0.1], X, 10 * y, criterion="log_density")[0].score
    assert one - ten == pytest.approx(math.log(10))


def test_best_prefers_the_first_of_equals_and_never_a_nan():
    X, y = problem()
    a = evaluate(Gaussian(1.0), [0.1], X, y, about={"name": "a"})[0]
    b = evaluate(Gaussian(1.0), [0.1], X, y, about={"name": "b"})[0]
    assert best([a, b]) is a
    assert evaluate(Gaussian(1.0), [0.1], X, y * float("nan"))[0].score == -math.inf
    with pytest.raises(ValueError, match="no settings"):
        best([])


def test_search_is_on_few_rows_and_finalists_on_all(monkeypatch):
    X, y = problem(200)
    sizes = []

    def spy(kernel, ridges, rows, *args, **kwargs):
        sizes.append((len(rows), len(ridges)))
        return evaluate(kernel, ridges, rows, *args, **kwargs)

    monkeypatch.setattr(selection, "evaluate", spy)
    kernels = [Gaussian(b) for b in (0.01, 1.0, 100.0)]
    chosen = select(kernels, [1e-3, 1e-1, 1e1], X, y, n_search=50, n_finalists=2, random_state=0)
    assert sizes == [(50, 3)] * 3 + [(200, 1)] * 2
    assert chosen.kernel == Gaussian(1.0)
    assert len(chosen.solution.alpha) == 200


def test_search_on_all_rows_equals_the_exhaustive_choice():
    X, y = problem(60)
    kernels = [Gaussian(b) for b in (0.3, 1.0, 3.0)] + [Laplace(b) for b in (0.3, 1.0, 3.0)]
    ridges = [1e-3, 1e-2, 1e-1, 1.0]
    chosen = select(kernels, ridges, X, y, criterion="log_density")
    everything = [c for k in kernels for r in ridges for c in evaluate(k, [r], X, y, criterion="log_density")]
    assert chosen.score == pytest.approx(max(c.score for c in everything))


def test_the_choice_depends_on_random_state_alone():
    X, y = problem(120)
    kernels = [Gaussian(b) for b in (0.5, 1.0, 2.0)]
    a, b = (select(kernels, [0.01, 0.1], X, y, n_search=30, random_state=3) for _ in range(2))
    assert (a.kernel, a.ridge, a.score) == (b.kernel, b.ridge, b.score)


def test_errors():
    X, y = problem()
    with pytest.raises(ValueError, match=r"criterion='auc'.*'squared_error', 'log_density', 'accuracy'"):
        evaluate(Gaussian(1.0), [0.1], X, y, criterion="auc")
    with pytest.raises(ValueError, match="n_search=1 .*at least 2"):
        select([Gaussian(1.0)], [0.1], X, y, n_search=1)


def test_an_intercept_leaves_the_row_out_for_real():
    """Centered kernels: the closed form equals refits with a free intercept; no row is seen through the others."""
    X, y = problem(25)
    y = y - y.mean()
    C = torch.eye(25, dtype=torch.float64) - 1 / 25
    K = Gaussian(1.5).matrix(X)
    for ridges in ([0.1], [1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0]):
        for candidate in evaluate_matrix(C @ K @ C, ridges, y, intercept=True):
            residuals = torch.zeros(25, dtype=torch.float64)
            for i in range(25):
                rest = torch.arange(25) != i
                A = torch.zeros((25, 25), dtype=torch.float64)
                A[:24, :24] = K[rest][:, rest] + candidate.ridge * torch.eye(24)
                A[24, :24] = A[:24, 24] = 1.0
                solution = torch.linalg.solve(A, torch.cat([y[rest], torch.zeros(1, dtype=torch.float64)]))
                residuals[i] = y[i] - K[i, rest] @ solution[:24] - solution[24]
            torch.testing.assert_close(candidate.fitted().residuals, residuals, rtol=1e-6, atol=1e-8)


def test_gram_changes_the_matrix_and_no_finalists_keeps_the_winner_of_the_search():
    X, y = problem(60)
    squared = evaluate(Gaussian(1.0), [0.1], X, y, gram=lambda K: K @ K)[0]
    K = Gaussian(1.0).matrix(X)
    assert squared.score == evaluate_matrix(K @ K, [0.1], y)[0].score
    chosen = select([Gaussian(1.0), Gaussian(9.0)], [0.1], X, y, n_search=20, n_finalists=0, random_state=0)
    assert len(chosen.fitted().alpha) == 20


def test_candidates_say_what_they_lack():
    with pytest.raises(ValueError, match="has no solution"):
        Candidate(Gaussian(1.0), 0.1).fitted()
    with pytest.raises(ValueError, match="has no kernel"):
        Candidate(None, 0.1).kernel_used()


def test_squared_stacking_weights_have_the_smallest_error_on_the_simplex():
    y, weights = numbers(30, 2), np.linspace(0.5, 2.0, 30)
    predictions = np.stack([y + s * numbers(30, 2, seed=k) for k, s in ((1, 0.5), (2, 0.6), (3, 3.0))])
    shares = squared_stacking_weights(predictions, y, weights)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()

    def error(p):
        return float(weights @ ((y - np.tensordot(p, predictions, axes=1)) ** 2).sum(axis=1))

    steps = np.linspace(0, 1, 41)
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12]
    assert error(shares) <= min(error(np.array(p)) for p in grid) + 1e-9
    assert not np.allclose(shares, squared_stacking_weights(predictions, y))


def test_squared_stacking_weights_of_perfect_predictions_are_equal():
    y = numbers(5, 1)
    assert_allclose(squared_stacking_weights(np.stack([y, y]), y), [0.5, 0.5])


def test_a_prediction_that_helps_nothing_has_no_share():
    y = numbers(40, 1)
    good = y + 0.01 * numbers(40, 1, seed=1)
    assert_allclose(squared_stacking_weights(np.stack([good, np.full_like(y, 50.0)]), y), [1.0, 0.0], atol=1e-3)


# ---- the climb ---------------------------------------------------------------------------------------------


GAIN = 1e-3


def bowl(i, j):
    """A cost with its bottom at (i, j), steeper along one axis, that remembers where it was asked."""
    asked = []

    def cost(place):
        asked.append(place)
        return 0.3 * (place[0] - i) ** 2 + 0.1 * (place[1] - j) ** 2

    return cost, asked


def everywhere(place):
    return True


@pytest.mark.parametrize("bottom", [(0, 0), (4, 0), (0, -6), (-2, 4), (6, 8)])
def test_it_finds_the_bottom_of_a_bowl_and_asks_nothing_twice(bottom):
    cost, asked = bowl(*bottom)
    assert climb(cost, everywhere, smallest_gain=GAIN, fine=False) == (bottom, 0.0)
    assert len(set(asked)) == len(asked)
    assert asked[0] == (0, 0)
    # Coarse steps are even.
    assert all(i % 2 == j % 2 == 0 for i, j in asked)


@pytest.mark.parametrize("bottom", [(0, 0), (3, 0), (1, -5), (-2, 3)])
def test_fine_steps_end_between_the_coarse_ones(bottom):
    cost, asked = bowl(*bottom)
    assert climb(cost, everywhere, smallest_gain=GAIN, fine=True) == (bottom, 0.0)
    assert len(set(asked)) == len(asked)


def test_it_stays_where_it_is_allowed():
    cost, asked = bowl(4, 6)
    place, lowest = climb(cost, lambda place: place[0] == 0 and place[1] <= 3, smallest_gain=GAIN, fine=True)
    assert place == (0, 3)
    assert lowest == cost(place)
    assert all(i == 0 and j <= 3 for i, j in asked)


def test_a_plain_is_left_after_its_neighbors_and_small_gains_are_none():
    asked = []

    def flat(place):
        asked.append(place)
        return 0.9 * GAIN * (place != (0, 0)) * -1.0

    assert climb(flat, everywhere, smallest_gain=GAIN, fine=False) == ((0, 0), 0.0)
    assert {(-2, 0), (0, -2), (0, 0), (0, 2), (2, 0)} <= set(asked)
    assert np.abs(asked).max() == 2


def test_a_slope_without_an_end_is_left_after_some_steps():
    place, lowest = climb(lambda place: -float(place[1]), everywhere, smallest_gain=GAIN, fine=False)
    assert place[1] == 2 * MOST_STEPS
    assert lowest == -2.0 * MOST_STEPS


def test_places_of_infinite_cost_are_not_taken():
    place, lowest = climb(
        lambda place: math.inf if place[1] > 0 else place[1] ** 2 + 1.0, everywhere, smallest_gain=GAIN, fine=True
    )
    assert (place, lowest) == ((0, 0), 1.0)
    # A start that cannot be used is left for a neighbor that can.
    place, _ = climb(lambda place: math.inf if place == (0, 0) else 1.0, everywhere, smallest_gain=GAIN, fine=False)
    assert place != (0, 0)
