"""The data: the two manifolds of appendix D.1, and features of images, with views and classes."""

from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

from experiments.data import drawn
from mercer import datasets
from mercer.image_features.pretrained import pretrained_features
from mercer.image_features.scattering import scattering
from mercer.views.sources import Augmented

# The views of each image are drawn and mapped to features once. This many views and principal components are kept.
N_VIEWS = 6
COMPONENTS = 256
SHAPES: dict[str, tuple[int, ...]] = {"digits": (8, 8), "mnist": (28, 28), "coil20": (32, 32), "cifar10": (32, 32, 3)}
CURVATURE, WAVES, POINTS = 0.2, 5, 100


class Samples(NamedTuple):
    """Rows, their views (if empty, the estimator draws views), classes, and the shape of images."""

    X: np.ndarray
    views: list[np.ndarray]
    y: np.ndarray
    image_shape: tuple[int, ...] | None = None


def two_manifolds(deviation: float, seed: int) -> Samples:
    """Return the samples of equation (7): a wavy circle on the sphere and its pole, 100 noisy samples of each."""
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
    """Return a set: the pixels of digits, and for other sets the features of images and of views of them.

    The features of gray images are wavelet scattering coefficients, and those of photographs (CIFAR-10) come from a
    pretrained network. With `mean_kept` the mean of the features is not subtracted, which is for methods of subspaces,
    since these contain the origin; there are then no views.
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
    """Return the samples without half of those of odd classes, as for Table 4(a); their features are not changed."""
    rows = balanced_no_more(samples.y, seed)
    return Samples(samples.X[rows], [view[rows] for view in samples.views], samples.y[rows], samples.image_shape)


def balanced_no_more(y: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows that remain if half of the rows of every other class are removed."""
    order = np.random.RandomState(seed).permutation(len(y))
    kept = [order[y[order] == label] for label in np.unique(y)]
    return np.sort(np.concatenate([rows[: len(rows) // 2] if i % 2 else rows for i, rows in enumerate(kept)]))


def views_of(X: np.ndarray, shape: tuple[int, ...], count: int, seed: int) -> list[np.ndarray]:
    """Return views of images by the default augmentation."""
    augmented, generator = Augmented.fitted("auto", shape, X), torch.Generator().manual_seed(seed)
    return [augmented(torch.from_numpy(X), generator).numpy() for _ in range(count)]


def scattered(images: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return scattering coefficients with all channels scaled to the same size, which the first array determines."""
    found = [scattering(rows.reshape(-1, *shape)) for rows in images]
    scale = np.sqrt(np.mean(found[0] ** 2, axis=(0, 2, 3), keepdims=True))
    return [(coefficients / scale).reshape(len(coefficients), -1) for coefficients in found]


def pretrained(images: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return the features of a pretrained network."""
    # By rounding, views may be slightly outside [0, 1].
    return [pretrained_features(rows.reshape(-1, *shape).clip(0.0, 1.0)) for rows in images]


def principal(rows: list[np.ndarray], mean_kept: bool) -> list[np.ndarray]:
    """Return several arrays in the principal components of the first array, without centering if `mean_kept`."""
    center = np.zeros_like(rows[0][0]) if mean_kept else rows[0].mean(axis=0)
    covariance = (rows[0] - center).T @ (rows[0] - center)
    _, vectors = np.linalg.eigh(covariance)
    return [(row - center) @ vectors[:, ::-1][:, :COMPONENTS] for row in rows]
