"""Landmarks: distinct, reproducible, and drawn by the rule they claim."""

import numpy as np
import pytest
import torch

from mercer import landmarks
from mercer.exceptions import DataWarning
from mercer.landmarks import METHODS, choose_landmarks
from mercer.mahalanobis import Mahalanobis


def naive_kmeans_plus_plus_chances(X, first, second):
    """The probability that k-means++ picks `first` and then `second` from rows X."""
    squares = ((X - X[first]) ** 2).sum(axis=1)
    return squares[second] / squares.sum() / len(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distinct_sorted_and_reproducible(method, dtype):
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 4)), 3, axis=0).astype(dtype)
    chosen = choose_landmarks(X, 30, method, random_state=1)
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) == 30
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, choose_landmarks(X, 30, method, random_state=1))
    assert set(chosen) != set(choose_landmarks(X, 30, method, random_state=2))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_fewer_distinct_rows_than_asked_for(method, offset):
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 3)) + offset, 20, axis=0).astype(np.float32)
    with pytest.warns(DataWarning, match="n_landmarks=10, but the 140 rows hold only 7 distinct ones"):
        chosen = choose_landmarks(X, 10, method, random_state=0)
    assert len(np.unique(X[chosen], axis=0)) == 7


@pytest.mark.parametrize("method", METHODS)
def test_all_rows_and_one_row(method):
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_array_equal(choose_landmarks(X, 20, method, random_state=0), np.arange(20))
    np.testing.assert_array_equal(choose_landmarks(X[:1], 1, method), [0])


@pytest.mark.parametrize("proposals", [1, 4, 64])
def test_kmeans_plus_plus_follows_its_rule_however_many_are_proposed(monkeypatch, proposals):
    """Pairs are drawn with the chances of the rule: the batches are exact, not an approximation."""
    monkeypatch.setattr(landmarks, "PROPOSALS", proposals)
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    draws = 4000
    counts = np.zeros((4, 4))
    random = np.random.RandomState(0)
    for _ in range(draws):
        a, b = choose_landmarks(X, 2, "kmeans++", random_state=random)
        counts[a, b] += 1
    expected = np.array(
        [[naive_kmeans_plus_plus_chances(X, a, b) + naive_kmeans_plus_plus_chances(X, b, a) for b in range(4)]
         for a in range(4)]
    )  # fmt: skip
    upper = np.triu_indices(4, 1)
    np.testing.assert_allclose(counts[upper] / draws, expected[upper], atol=4 * (0.25 / draws) ** 0.5)


def test_third_centre_follows_the_rule_too():
    """Rejection takes the centres of the same batch into account."""
    X = np.array([[0.0], [0.1], [10.0], [10.1], [20.0]])
    random = np.random.RandomState(0)
    hits = sum(
        len({0, 1} & set(chosen)) == 1 and len({2, 3} & set(chosen)) == 1 and 4 in chosen
        for chosen in (choose_landmarks(X, 3, "kmeans++", random_state=random) for _ in range(300))
    )
    assert hits >= 290  # three far groups: one centre each, but for rare draws


def test_kmeans_plus_plus_measures_in_the_metric():
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], 30), np.random.default_rng(0).normal(size=90) * 100])
    metric = Mahalanobis.from_weights([1.0, 0.0])
    for seed in range(5):
        chosen = choose_landmarks(X, 3, "kmeans++", metric=metric, random_state=seed)
        assert set(X[chosen, 0]) == {0.0, 1.0, 2.0}


@pytest.mark.parametrize("method", METHODS)
def test_tensors_and_memory_maps(method, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.save(tmp_path / "X.npy", X)
    expected = choose_landmarks(X, 10, method, random_state=0)
    for source in (torch.from_numpy(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        np.testing.assert_array_equal(choose_landmarks(source, 10, method, random_state=0), expected)
    tiny = choose_landmarks(X, 10, method, random_state=0, working_memory=1e-3)
    np.testing.assert_array_equal(tiny, expected)


def test_errors():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"landmarks='grid' .*'uniform', 'kmeans\+\+'"):
        choose_landmarks(X, 2, "grid")
    with pytest.raises(ValueError, match="n_landmarks=0 .*at least 1"):
        choose_landmarks(X, 0)


@pytest.mark.slow
def test_two_thousand_of_half_a_million_rows():
    """Many rows: distinct, and better spread than a uniform draw."""
    X = np.random.default_rng(0).standard_t(3, size=(500_000, 10)).astype(np.float32)
    chosen = choose_landmarks(X, 2000, "kmeans++", random_state=0)
    uniform = choose_landmarks(X, 2000, "uniform", random_state=0)
    assert len(np.unique(chosen)) == 2000
    sample = torch.from_numpy(X[::100])
    far, near = (
        torch.cdist(sample, torch.from_numpy(X[rows])).amin(dim=1).square().mean() for rows in (uniform, chosen)
    )
    assert near < 0.8 * far
