"""Nyström features of 60 000 rows of 784 columns with 1000 landmarks, compared with scikit-learn's Nystroem.

The map of a fitted model is also compared with its two matrix products alone, into memory that is at hand.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

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


@lru_cache
def fitted(n_rows: int) -> Nystrom:
    """Return the model of the rows of `setup`, which are the same each time."""
    X = setup(n_rows <= 10_000)
    return Nystrom(Gaussian(BANDWIDTH), n_landmarks=n_landmarks(X), random_state=0).fit(X)


def mercer_map(X: np.ndarray) -> np.ndarray:
    return fitted(len(X)).transform(X)


@lru_cache
def arrays_at_hand(n: int, m: int, h: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return room for the two products: fresh memory would take as long as the exponentials."""
    return torch.empty((n, m)), torch.empty((n, h))


def two_products(X: np.ndarray) -> np.ndarray:
    Z, A = (torch.from_numpy(array) for array in (fitted(len(X)).landmarks_, fitted(len(X)).coefficients_))
    K, features = arrays_at_hand(len(X), *A.shape)
    torch.mm(torch.from_numpy(X), Z.T, out=K)
    return torch.mm(K, A, out=features).numpy()


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
    {"mercer": mercer, "scikit-learn": scikit_learn, "map alone": mercer_map, "its two products": two_products},
    check=check,
    claims=[
        RatioClaim("fit and transform at least 2 x faster than scikit-learn's", "scikit-learn", "mercer", 2.0),
        RatioClaim("the map takes at most 1.15 times its two products", "its two products", "map alone", 1 / 1.15),
    ],
)
