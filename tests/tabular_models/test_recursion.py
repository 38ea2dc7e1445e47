"""The loop of recursive feature machines, against the loop as the paper writes it."""

import numpy as np
import pytest
import torch

from mercer.agop import agop
from mercer.kernels import Gaussian, Laplace
from mercer.selection import best, evaluate
from mercer.tabular_models import recursive_features
from mercer.tabular_models.recursion import next_metric
from tests import naive
from tests.examples_of import numbers


def toy(n=40, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return torch.from_numpy(X), torch.from_numpy((X[:, 0] + X[:, 1]) ** 2)


def ridge_fit(X, y, *ridges):
    """The fit of every iterate: the best of the ridges by leave-one-out."""
    return lambda kernel: best(evaluate(kernel, list(ridges), X, y))


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_iterates_equal_the_paper_s_loop(metric):
    X, y = toy(12)
    ridge, M = 0.1, np.eye(4)
    iterates = list(recursive_features(Laplace(2.0), X, ridge_fit(X, y, ridge), metric=metric, n_iter=2))
    assert [c.about["iterate"] for c in iterates] == [0, 1, 2]
    for iterate in iterates:
        np.testing.assert_allclose(iterate.kernel.single_metric().matrix(4), M, atol=1e-8)
        kernel = Laplace(2.0, metric=iterate.kernel.single_metric())
        alpha = np.linalg.solve(naive.kernel_matrix(kernel, X, X) + ridge * np.eye(12), y.numpy())
        np.testing.assert_allclose(iterate.solution.alpha, alpha, atol=1e-8)
        M = naive.agop(kernel, X.numpy(), X.numpy(), alpha[:, None])
        M = np.diag(np.diag(M)) if metric == "diagonal" else M
        M = 4 * M / np.trace(M)


def test_identity_stays_and_unknown_metrics_are_named():
    X, y = toy()
    assert len(list(recursive_features(Laplace(2.0), X, ridge_fit(X, y, 0.1), metric="identity"))) == 1
    with pytest.raises(ValueError, match=r"metric='agop' .*'identity', 'diagonal', 'full'"):
        next(recursive_features(Laplace(2.0), X, ridge_fit(X, y, 0.1), metric="agop"))


def test_finds_the_direction_and_predicts_better_with_it():
    X, y = toy(300, 10)
    y = y - y.mean()
    iterates = list(recursive_features(Laplace(4.0), X, ridge_fit(X, y, 1e-3, 1e-2, 1e-1), n_iter=3))
    chosen = best(iterates)
    assert chosen.score > 0.25 * iterates[0].score  # scores are minus squared errors
    (direction,), (share,) = chosen.kernel.single_metric().directions(1)
    assert share > 0.9
    np.testing.assert_allclose(np.abs(direction[:2]), 0.5**0.5, atol=0.05)


def test_weights_count_rows_in_the_average_as_often():
    X, y = toy(12)
    weights = torch.from_numpy(np.random.default_rng(1).integers(1, 4, size=12)).double()
    alpha = torch.linalg.solve(Laplace(2.0).matrix(X) + 0.1 * torch.eye(12), y)
    weighted = next_metric(Laplace(2.0), X, X, alpha, "full", weights)
    repeated = next_metric(Laplace(2.0), X.repeat_interleave(weights.long(), dim=0), X, alpha, "full")
    np.testing.assert_allclose(weighted.matrix(), repeated.matrix(), atol=1e-10)
    assert np.abs(weighted.matrix() - next_metric(Laplace(2.0), X, X, alpha, "full").matrix()).max() > 1e-2
    _, second = recursive_features(Laplace(2.0), X, ridge_fit(X, y, 0.1), n_iter=1, weights=weights)
    np.testing.assert_allclose(second.kernel.single_metric().matrix(), weighted.matrix(), atol=1e-8)


def test_the_bandwidth_that_an_iterate_chose_is_where_the_next_begins():
    X, y = toy(12)
    seen = []

    def fit(kernel):
        seen.append(kernel.bandwidth)
        return ridge_fit(X, y, 0.1)(kernel.rescaled(2.0))

    list(recursive_features(Laplace(1.0), X, fit, n_iter=2))
    assert seen == [1.0, 2.0, 4.0]


def test_a_constant_target_leaves_the_metric_as_it_was_and_finite_scores():
    X, _ = toy()
    fit = ridge_fit(X, torch.zeros(40, dtype=torch.float64), 0.1)
    iterates = list(recursive_features(Laplace(2.0, metric=[1.0, 4.0, 9.0, 16.0]), X, fit, n_iter=2))
    assert len(iterates) == 3
    assert all(np.isfinite(c.score) for c in iterates)
    np.testing.assert_allclose(iterates[-1].kernel.single_metric().matrix(4), np.diag([1.0, 4.0, 9.0, 16.0]))


@pytest.mark.parametrize("outputs", [(), (2,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_gradients_than_columns_stay_in_their_span(outputs, weighted):
    X, alpha = torch.from_numpy(numbers(5, 30, seed=0)), torch.from_numpy(numbers(5, *outputs, seed=1))
    weights = torch.linspace(0.5, 2.0, 5, dtype=torch.float64) if weighted else None
    kernel = Gaussian(4.0)
    learned = next_metric(kernel, X, X, alpha, "full", weights)
    M = agop(kernel, X, X, alpha, weights=weights).numpy()
    assert learned.factor.shape[1] <= 5 * (2 if outputs else 1)
    np.testing.assert_allclose(learned.matrix(), M * 30 / np.trace(M), rtol=1e-9, atol=1e-12)


def test_a_constant_fit_of_few_rows_keeps_the_metric():
    X = torch.from_numpy(numbers(5, 30, seed=0))
    assert next_metric(Gaussian(4.0), X, X, torch.zeros(5, dtype=torch.float64), "full").kind == "identity"
