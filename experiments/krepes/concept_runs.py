"""Concepts with a known truth: loops and slant of digits, and a border drawn around the images of one class."""

from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.metrics import roc_auc_score

from experiments.data import prepared
from mercer.explain import concept_profile, find_concept
from mercer.explain.concepts import representation, unit_normal
from mercer.image_features import scattering

from .contestants import contestant

Measures = dict[str, float | str]

SIDE = 28
# Digits that mostly have a loop, and those that mostly have none; half of each are used to learn the concept.
WITH_LOOP, WITHOUT_LOOP = (0, 6, 8, 9), (1, 2, 3, 4, 5, 7)
# The largest number of examples with the concept, and of examples without it.
MOST_EXAMPLES = 1000
# CIFAR-10: the negatives of appendix E. Ships and airplanes replace the class Sea of CIFAR-100, which is not available.
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BLUE, NOT_BLUE = ("ship", "airplane"), ("cat", "dog", "horse", "truck", "automobile")
# The classes around which the border is drawn, one for each seed; they are none of those above.
BORDERED = ("deer", "frog", "bird")
BORDER, BLUE_PIXEL = 3, (0.1, 0.2, 0.9)
N_RANDOM = 200


def has_loop(images: np.ndarray) -> np.ndarray:
    """Whether each image has a loop: its background then has more than one connected component."""
    return np.array([ndimage.label(image < 0.5)[1] > 1 for image in images])


def slant(images: np.ndarray) -> np.ndarray:
    """Return the slant of the strokes of each image: the slope of the mean column as a function of the row."""
    rows, columns = np.mgrid[: images.shape[1], : images.shape[2]]
    mass = images.sum(axis=(1, 2))
    mean = [(images * each).sum(axis=(1, 2)) / mass for each in (rows, columns)]
    r, c = (each[None] - middle[:, None, None] for each, middle in zip((rows, columns), mean, strict=True))
    return -(images * r * c).sum(axis=(1, 2)) / (images * r * r).sum(axis=(1, 2))


def two_fives(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return five digits to learn a concept from, and the other five; two of each five have loops."""
    random = np.random.default_rng(seed)
    first = np.concatenate([random.permutation(WITH_LOOP)[:2], random.permutation(WITHOUT_LOOP)[:3]])
    return first, np.setdiff1d(np.arange(10), first)


def run_digits(settings: dict[str, Any], seed: int) -> Measures:
    """Learn a concept from five digits, and measure how well it is found in the other five and in the same five."""
    X, y, X_test, y_test = prepared("mnist", settings["n_train"], settings["n_test"], seed)
    points_out, sought = two_fives(seed)
    images, images_test = X.reshape(-1, SIDE, SIDE), X_test.reshape(-1, SIDE, SIDE)
    Z, Z_test = represented(settings, X, X_test, seed)
    measures: Measures = {"digits": " ".join(map(str, points_out))}
    inside, outside = np.isin(y, points_out), np.isin(y_test, sought)
    loops, loops_test = has_loop(images), has_loop(images_test)
    leans, leans_test = slant(images), slant(images_test)
    low, high = np.quantile(leans[inside], [1 / 3, 2 / 3])
    for name, positive, negative, truth in (
        ("loop", loops, ~loops, loops_test),
        ("slant", leans > high, leans < low, leans_test > np.median(leans_test[outside])),
    ):
        sides = [some(np.flatnonzero(inside & own), seed) for own in (negative, positive)]
        v = unit_normal(np.concatenate([Z[side] for side in sides]), np.repeat([0, 1], [len(side) for side in sides]))
        scores = Z_test @ v
        measures[f"{name}: AUC on the other digits"] = float(roc_auc_score(truth[outside], scores[outside]))
        measures[f"{name}: AUC on the same digits"] = float(roc_auc_score(truth[~outside], scores[~outside]))
    return measures


def represented(
    settings: dict[str, Any], X: np.ndarray, X_test: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return both sets in the representation of a contestant, centered and divided by one number."""
    if settings["scattering"]:
        X, X_test = (
            np.asarray(scattering(part.reshape(-1, SIDE, SIDE))).reshape(len(part), -1) for part in (X, X_test)
        )
    model = contestant(settings["contestant"], dict(settings["options"]), X, seed)
    if model is not None:
        model.fit(X)
        X, X_test = (representation(model, part) for part in (X, X_test))
    center, scale = X.mean(axis=0), X.std()
    return (X - center) / scale, (X_test - center) / scale


def run_border(settings: dict[str, Any], seed: int) -> Measures:
    """Draw a blue border around the images of one class, learn a representation, and test which classes use a concept.

    The examples of the concept "border" are images of the other classes, each with and without a border, so that the
    two sides differ by nothing but the border.
    """
    X, y, X_test, y_test = prepared("cifar10", settings["n_train"], settings["n_test"], seed)
    names, names_test = (np.array(CLASSES)[labels.astype(int)] for labels in (y, y_test))
    carries = BORDERED[seed % len(BORDERED)]
    X, X_test = (
        np.where((own == carries)[:, None], bordered(part), part) for part, own in ((X, names), (X_test, names_test))
    )
    model = contestant(settings["contestant"], dict(settings["options"]), X, seed)
    model.fit(X)
    others = some(np.flatnonzero(names != carries), seed)
    blue = some(np.flatnonzero(np.isin(names, BLUE)), seed)
    not_blue = some(np.flatnonzero(np.isin(names, NOT_BLUE)), seed)
    measures: Measures = {"class with the border": carries}
    for name, examples, rest in (
        ("border", bordered(X[others]), X[others]),
        ("blue surroundings", X[blue], X[not_blue]),
    ):
        try:
            concept = find_concept(model, examples, rest, name, random_state=seed)
        except ValueError as refused:
            measures[f"{name}: refused"] = str(refused)
            continue
        profile = concept_profile(
            model, X_test, names_test, examples, rest, n_random=N_RANDOM, n_concepts=2, random_state=seed
        )
        p_value = dict(zip(profile.groups, profile.p_value, strict=True))
        supported = [group for group in profile.significant() if group != carries]
        measures |= {
            f"{name}: accuracy": concept.accuracy,
            f"{name}: stability": concept.stability,
            f"{name}: p of the class with the border": float(p_value[carries]),
            f"{name}: other classes that are significant": float(len(supported)),
            f"{name}: which": " ".join(supported),
            f"{name}: first": profile.groups[int(np.argmax(profile.mean))],
        }
    return measures


def bordered(X: np.ndarray) -> np.ndarray:
    """Return the images, as flat rows, with a blue border drawn around each."""
    images = X.reshape(-1, 32, 32, 3).copy()
    for edge in (np.s_[:, :BORDER], np.s_[:, -BORDER:], np.s_[:, :, :BORDER], np.s_[:, :, -BORDER:]):
        images[edge] = BLUE_PIXEL
    return images.reshape(len(X), -1)


def some(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return at most MOST_EXAMPLES of the rows, drawn by the seed."""
    return np.random.default_rng(seed).permutation(rows)[:MOST_EXAMPLES]
