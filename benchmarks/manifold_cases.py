"""Cases of manifold clustering for `python -m benchmarks clustering`: what is fitted, and the true labels.

Each case has a name, a function that fits and returns labels, and the classes. Data are made or come with scikit-learn,
but for MNIST, whose scattering features take longer than the fit.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from experiments.manifold_linearizing_clustering.data import Samples, samples_of, two_manifolds
from mercer import ManifoldClustering


class ClusteringCase(NamedTuple):
    """What is timed.

    Attributes
    ----------
    name : str
    fit : callable
        () -> labels of shape (n,).
    classes : callable
        () -> the true labels.
    """

    name: str
    fit: Callable[[], np.ndarray]
    classes: Callable[[], np.ndarray]


@lru_cache(maxsize=3)
def manifolds() -> Samples:
    """The 200 points of appendix D.1."""
    return two_manifolds(0.05, 0)


@lru_cache(maxsize=3)
def scattered(rows: int) -> Samples:
    """MNIST through the scattering, with views."""
    return samples_of("mnist", rows, 0)


@lru_cache(maxsize=1)
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return (X / 16.0).astype(np.float32), y


def fit_manifolds() -> np.ndarray:
    return ManifoldClustering(2, n_components=3, backbone="mlp", random_state=0).fit(manifolds().X).labels_


def fit_digits() -> np.ndarray:
    return ManifoldClustering(10, image_shape=(8, 8), random_state=0).fit(digits()[0]).labels_


def fit_scattered(rows: int) -> np.ndarray:
    samples = scattered(rows)
    return ManifoldClustering(10, standardize=False, random_state=0).fit_views(samples.X, *samples.views).labels_


def classes_of_scattered(rows: int) -> np.ndarray:
    return scattered(rows).y


def manifold_cases(quick: bool) -> list[ClusteringCase]:
    """All of them; quick: the toy alone."""
    made = [ClusteringCase("two manifolds, 200 points, mlp", fit_manifolds, lambda: manifolds().y)]
    if quick:
        return made
    made.append(ClusteringCase("digits", fit_digits, lambda: digits()[1]))
    for rows in (2000, 10_000):
        name = f"mnist {rows} scattering features"
        made.append(ClusteringCase(name, partial(fit_scattered, rows), partial(classes_of_scattered, rows)))
    return made
