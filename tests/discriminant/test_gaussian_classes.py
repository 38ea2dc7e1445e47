"""Gaussians of classes: rows that choose the temperature leave the centroid of their own class."""

import numpy as np
from numpy.testing import assert_allclose

from mercer import KernelDiscriminant
from mercer.discriminant.gaussian_classes import (
    best_temperature,
    gaussian_classes,
    squared_class_distances,
    without_the_row,
)
from tests.examples_of import numbers


def test_a_row_is_as_far_from_its_centroid_as_from_that_of_the_other_rows():
    values, of_row = numbers(9, 2), np.array([0, 0, 1, 1, 1, 1, 2, 0, 2])
    counts = np.bincount(of_row)
    centroids = np.stack([values[of_row == k].mean(axis=0) for k in range(3)])
    covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    found = squared_class_distances(values, centroids, covariance) * without_the_row(of_row, counts)
    for i, own in enumerate(of_row):
        others = (of_row == own) & (np.arange(9) != i)
        moved = centroids.copy()
        moved[own] = values[others].mean(axis=0)
        assert_allclose(found[i], squared_class_distances(values[[i]], moved, covariance)[0])


def test_a_class_of_one_row_keeps_its_centroid():
    assert_allclose(without_the_row(np.array([1]), np.array([5, 1])), 1.0)


def test_the_temperature_is_chosen_by_distances_without_the_row():
    values, of_row = numbers(12, 2), np.arange(12) % 3
    priors, everyone = np.full(3, 1 / 3), np.arange(12)
    found = gaussian_classes(values, of_row, priors, np.ones(3), everyone)
    squares = squared_class_distances(values, found.centroids, found.covariance)
    growth = without_the_row(of_row, np.bincount(of_row))
    assert found.temperature == best_temperature(squares * growth, priors, of_row)[0]
    assert found.temperature > 1.2 * best_temperature(squares, priors, of_row)[0]


def test_noise_is_not_taken_for_classes():
    """Columns that say nothing of three classes: a log loss near that of their shares, log 3."""
    losses = []
    for seed in range(8):
        X, y = numbers(560, 5, seed=seed), np.random.default_rng(seed + 50).integers(0, 3, 560)
        model = KernelDiscriminant("gaussian", ridge=1.0, bandwidth="median").fit(X[:60], y[:60])
        losses.append(-np.log(model.predict_proba(X[60:])[np.arange(500), y[60:]]).mean())
    # With the rows in their own centroids it is .089 above.
    assert np.mean(losses) < np.log(3) + 0.06
