"""Nyström features of 60 000 rows of 784 columns with 1000 landmarks, compared with scikit-learn's Nystroem."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks import Benchmark, RatioClaim
from benchmarks.kernel_matrix import BANDWIDTH
from benchmarks.kernel_matrix import setup as rows_and_landmarks
from mercer import Nystrom
from mercer.kernels import Gaussian


def setup(quick: bool) -> np.ndarray:
    return rows_and_landmarks(quick)[0]


def n_landmarks(X: np.ndarray) -> int:
    return 1000 if len(X) > 10_000 else 100


def mercer(X: np.ndarray) -> np.ndarray:
    return Nystrom(Gaussian(BANDWIDTH), n_landmarks=n_landmarks(X), random_state=0).fit(X).transform(X)


def scikit_learn(X: np.ndarray) -> np.ndarray:
    from sklearn.kernel_approximation import Nystroem

    model = Nystroem(gamma=0.5 / BANDWIDTH**2, n_components=n_landmarks(X), random_state=0)
    return model.fit(X).transform(X)


def check(outputs: Mapping[str, Any]) -> None:
    """Raise unless both approximate the same kernel, up to the choice of landmarks."""
    ours, theirs = outputs["mercer"][:500].astype(float), outputs["scikit-learn"][:500].astype(float)
    assert np.abs(ours @ ours.T - theirs @ theirs.T).mean() < 0.05


BENCHMARK = Benchmark(
    "nystrom",
    setup,
    {"mercer": mercer, "scikit-learn": scikit_learn},
    check=check,
    claims=[RatioClaim("fit and transform at least 2 x faster than scikit-learn's", "scikit-learn", "mercer", 2.0)],
)
