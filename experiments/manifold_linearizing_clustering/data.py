"""Samples, views of them and classes: the two manifolds of appendix D.1, and images by their features."""

from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

from experiments.data import drawn
from mercer import datasets
from mercer.image_features.pretrained import pretrained_features
from mercer.image_features.scattering import scattering
from mercer.views.sources import Augmented

# Views of each image are drawn and put through the scattering once; so many principal components are kept.
N_VIEWS = 6
COMPONENTS = 256
SHAPES: dict[str, tuple[int, ...]] = {"digits": (8, 8), "mnist": (28, 28), "coil20": (32, 32), "cifar10": (32, 32, 3)}
CURVATURE, WAVES, POINTS = 0.2, 5, 100


class Samples(NamedTuple):
    """Rows, views of them (none: drawn by the estimator), classes, and the shape of images."""

    X: np.ndarray
    views: list[np.ndarray]
    y: np.ndarray
    image_shape: tuple[int, ...] | None = None


def two_manifolds(deviation: float, seed: int) -> Samples:
    """Equation (7): a wavy circle on the sphere and a point at its pole, 100 samples each, with noise on all."""
    random = np.random.default_rng(seed)
    phi = 2 * np.pi * np.arange(1, POINTS + 1) / POINTS
    height = CURVATURE * np.sin(WAVES * phi)
    circle = np.stack([np.cos(height) * np.cos(phi), np.cos(height) * np.sin(phi), np.sin(height)], axis=1)
    pole = np.tile([0.0, 0.0, 1.0], (POINTS, 1))
    X = np.vstack([circle, pole]) + deviation * random.normal(size=(2 * POINTS, 3))
    return Samples(X, [], np.repeat([0, 1], POINTS))


def samples_of(
    name: str,
    n: int | None,
    seed: int,
    *,
    mean_kept: bool = False,
    n_views: int = N_VIEWS,
) -> Samples:
    """Return a set: digits as they are, others by features of the images, with views of the images.

    Gray images go through the wavelet scattering, photographs (CIFAR-10) through a pretrained network. `mean_kept` is
    for subspaces, which go through the origin: the mean of the features is not taken off. There are no views then.
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = (X / 16.0).astype(np.float32)
    else:
        data = datasets.load(name)
        X, y = drawn(data.X.reshape(len(data.X), -1), data.y, n, seed)
    shape = SHAPES[name]
    if name == "digits":
        return Samples(X, [], y, shape)
    describe = pretrained if name == "cifar10" else scattered
    views = [] if mean_kept else views_of(X, shape, n_views, seed)
    features, *views = principal(describe([X, *views], shape), mean_kept)
    return Samples(features, views, y)


def halved(samples: Samples, seed: int) -> Samples:
    """Return samples without half of those of odd classes, as for Table 4(a); features stay those of all of them."""
    rows = balanced_no_more(samples.y, seed)
    return Samples(samples.X[rows], [view[rows] for view in samples.views], samples.y[rows], samples.image_shape)


def balanced_no_more(y: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows that are left when half of the samples of odd classes are removed."""
    order = np.random.RandomState(seed).permutation(len(y))
    kept = [order[y[order] == label] for label in np.unique(y)]
    return np.sort(np.concatenate([rows[: len(rows) // 2] if i % 2 else rows for i, rows in enumerate(kept)]))


def views_of(X: np.ndarray, shape: tuple[int, ...], count: int, seed: int) -> list[np.ndarray]:
    """Return views of images by the default augmentation."""
    augmented, generator = Augmented.fitted("auto", shape, X), torch.Generator().manual_seed(seed)
    return [augmented(torch.from_numpy(X), generator).numpy() for _ in range(count)]


def scattered(images: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return scattering coefficients, channels scaled alike; all by the first of the arrays."""
    found = [scattering(rows.reshape(-1, *shape)) for rows in images]
    scale = np.sqrt(np.mean(found[0] ** 2, axis=(0, 2, 3), keepdims=True))
    return [(coefficients / scale).reshape(len(coefficients), -1) for coefficients in found]


def pretrained(images: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return a pretrained network's features."""
    # Views may leave [0, 1] by a rounding.
    return [pretrained_features(rows.reshape(-1, *shape).clip(0.0, 1.0)) for rows in images]


def principal(rows: list[np.ndarray], mean_kept: bool) -> list[np.ndarray]:
    """Return the first principal components of several arrays, by the rows of the first; or its singular vectors'."""
    center = np.zeros_like(rows[0][0]) if mean_kept else rows[0].mean(axis=0)
    covariance = (rows[0] - center).T @ (rows[0] - center)
    _, vectors = np.linalg.eigh(covariance)
    return [(row - center) @ vectors[:, ::-1][:, :COMPONENTS] for row in rows]
