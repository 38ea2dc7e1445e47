"""Sparse self-expression of 1000 points of 10 subspaces: all points at once, and one by one with scikit-learn."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks import Benchmark, RatioClaim
from mercer.clustering.expression import ElasticNetExpression, MatchingPursuitExpression, SelfExpression

STRENGTH, L1_RATIO, N_NONZERO = 50.0, 0.9, 10
# The largest power of ten for which scikit-learn's objective is within 1e-6 of the minimum for all points.
TOLERANCE = 1e-5


def setup(quick: bool) -> np.ndarray:
    return points(150 if quick else 1000)


def points(n: int) -> np.ndarray:
    """Return points of length 1 in 10 subspaces of dimension 8 of R^200, with noise of a tenth of their length."""
    random = np.random.default_rng(0)
    bases = [np.linalg.qr(random.normal(size=(200, 8)))[0] for _ in range(10)]
    X = _unit(np.concatenate([random.normal(size=(n // 10, 8)) @ basis.T for basis in bases]))
    return _unit(X + 0.1 * _unit(random.normal(size=X.shape)))


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def penalties(X: np.ndarray, j: int) -> tuple[float, float]:
    """Return the weights of the l1 and l2 penalties of point j, which are added to 1/2 |x - Z c|^2."""
    l1 = float(np.abs(np.delete(X @ X[j], j)).max()) / STRENGTH
    return l1, l1 * (1.0 - L1_RATIO) / L1_RATIO


def others(X: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for j in range(len(X)):
        yield j, np.arange(len(X)) != j


def at_once(expression: SelfExpression, X: np.ndarray) -> np.ndarray:
    x = torch.from_numpy(X)
    return expression.within(x @ x.T).numpy()


def elastic_net(X: np.ndarray) -> np.ndarray:
    return at_once(ElasticNetExpression(STRENGTH, L1_RATIO), X)


def matching_pursuit(X: np.ndarray) -> np.ndarray:
    return at_once(MatchingPursuitExpression(N_NONZERO), X)


def elastic_net_loop(X: np.ndarray, gram: np.ndarray | None = None) -> np.ndarray:
    from sklearn.linear_model import ElasticNet

    C = np.zeros((len(X), len(X)))
    for j, rest in others(X):
        l1, l2 = penalties(X, j)
        model = ElasticNet(
            (l1 + l2) / X.shape[1],
            l1_ratio=l1 / (l1 + l2),
            fit_intercept=False,
            precompute=False if gram is None else gram[np.ix_(rest, rest)],
            tol=TOLERANCE,
            max_iter=100_000,
        )
        C[rest, j] = model.fit(X[rest].T, X[j]).coef_
    return C


def elastic_net_loop_with_gram(X: np.ndarray) -> np.ndarray:
    return elastic_net_loop(X, X @ X.T)


def matching_pursuit_loop(X: np.ndarray) -> np.ndarray:
    """Use `orthogonal_mp`; `orthogonal_mp_gram` takes longer, since it copies the Gram matrix for each point."""
    from sklearn.linear_model import orthogonal_mp

    C = np.zeros((len(X), len(X)))
    for j, rest in others(X):
        C[rest, j] = orthogonal_mp(X[rest].T, X[j], n_nonzero_coefs=N_NONZERO)
    return C


def check(outputs: Mapping[str, Any]) -> None:
    """Raise unless the objectives agree within 1e-6 for each point; for matching pursuit these are the residuals."""
    X = points(len(outputs["elastic net"]))
    l1, l2 = np.transpose([penalties(X, j) for j in range(len(X))])

    def left(name: str) -> np.ndarray:
        return np.square(X - outputs[name].T @ X).sum(axis=1)

    def objective(name: str) -> np.ndarray:
        C = outputs[name]
        return 0.5 * left(name) + l1 * np.abs(C).sum(axis=0) + 0.5 * l2 * np.square(C).sum(axis=0)

    for loop in ("scikit-learn ElasticNet", "the same, Gram matrix given"):
        np.testing.assert_allclose(objective("elastic net"), objective(loop), rtol=1e-6)
    np.testing.assert_allclose(left("matching pursuit"), left("scikit-learn orthogonal_mp"), rtol=1e-6)


BENCHMARK = Benchmark(
    "self_expression",
    setup,
    {
        "scikit-learn ElasticNet": elastic_net_loop,
        "the same, Gram matrix given": elastic_net_loop_with_gram,
        "elastic net": elastic_net,
        "scikit-learn orthogonal_mp": matching_pursuit_loop,
        "matching pursuit": matching_pursuit,
    },
    check=check,
    claims=[
        RatioClaim("elastic net at least 3 x faster than a loop", "scikit-learn ElasticNet", "elastic net", 3.0),
        RatioClaim(
            "matching pursuit at least 3 x faster than a loop", "scikit-learn orthogonal_mp", "matching pursuit", 3.0
        ),
    ],
)
