"""The loop of recursive feature machines, against the loop as the paper writes it."""

import numpy as np
import pytest
import torch

from mercer.kernels import Laplace
from mercer.selection import best
from mercer.supervised import recursive_features
from tests import naive


def toy(n=40, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return torch.from_numpy(X), torch.from_numpy((X[:, 0] + X[:, 1]) ** 2)


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_iterates_equal_the_paper_s_loop(metric):
    X, y = toy(12)
    ridge, M = 0.1, np.eye(4)
    iterates = list(recursive_features(Laplace(2.0), X, y, [ridge], metric=metric, n_iter=2))
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
    assert len(list(recursive_features(Laplace(2.0), X, y, [0.1], metric="identity"))) == 1
    with pytest.raises(ValueError, match=r"metric='agop' .*'identity', 'diagonal', 'full'"):
        next(recursive_features(Laplace(2.0), X, y, [0.1], metric="agop"))


def test_finds_the_direction_and_predicts_better_with_it():
    X, y = toy(300, 10)
    y = y - y.mean()
    iterates = list(recursive_features(Laplace(4.0), X, y, [1e-3, 1e-2, 1e-1], n_iter=3))
    chosen = best(iterates)
    assert chosen.score > 0.25 * iterates[0].score  # scores are minus squared errors
    (direction,), (share,) = chosen.kernel.single_metric().directions(1)
    assert share > 0.9
    np.testing.assert_allclose(np.abs(direction[:2]), 0.5**0.5, atol=0.05)


def test_a_constant_target_leaves_a_metric_of_zeros_and_finite_scores():
    X, _ = toy()
    iterates = list(recursive_features(Laplace(2.0), X, torch.zeros(40, dtype=torch.float64), [0.1], n_iter=2))
    assert all(np.isfinite(c.score) for c in iterates)
