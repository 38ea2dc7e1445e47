"""Landmarks: distinct, reproducible, and drawn by the rule they claim."""

from functools import partial

import numpy as np
import pytest
import torch

from mercer.exceptions import DataWarning
from mercer.kernels import Gaussian
from mercer.landmarks import KERNEL_METHODS, METHODS, choose_landmarks
from mercer.landmarks import choice as landmarks
from mercer.mahalanobis import Mahalanobis


@pytest.fixture(params=[*METHODS, *(f"{method} estimated" for method in KERNEL_METHODS)])
def choose(request, monkeypatch):
    """Choose landmarks by each method; leverage scores are exact on few rows, so once more with estimates."""
    method, *estimated = request.param.split()
    if estimated:
        monkeypatch.setattr(landmarks, "EXACT_ROWS", 0)
        monkeypatch.setattr(landmarks, "SAMPLED_ROWS", (8, 16))
    return partial(choose_landmarks, method=method, kernel=Gaussian(1.0))


def naive_kmeans_plus_plus_chances(X, first, second):
    """The probability that k-means++ picks `first` and then `second` from rows X."""
    squares = ((X - X[first]) ** 2).sum(axis=1)
    return squares[second] / squares.sum() / len(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distinct_sorted_and_reproducible(choose, dtype):
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 4)), 3, axis=0).astype(dtype)
    chosen = choose(X, 30, random_state=1)
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) == 30
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, choose(X, 30, random_state=1))
    assert set(chosen) != set(choose(X, 30, random_state=2))


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_fewer_distinct_rows_than_asked_for(choose, offset):
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 3)) + offset, 20, axis=0).astype(np.float32)
    with pytest.warns(DataWarning, match="n_landmarks=10, but the 140 rows hold only 7 distinct ones"):
        chosen = choose(X, 10, random_state=0)
    assert len(np.unique(X[chosen], axis=0)) == 7


def test_all_rows_and_one_row(choose):
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_array_equal(choose(X, 20, random_state=0), np.arange(20))
    np.testing.assert_array_equal(choose(X[:1], 1), [0])


def test_one_distinct_row(choose):
    X = np.full((30, 2), 3.0)
    assert len(choose(X, 1, random_state=0)) == 1
    for wanted in (2, 30, 40):
        with pytest.warns(DataWarning, match=f"n_landmarks={wanted}, but the 30 rows hold only 1 distinct"):
            assert len(choose(X, wanted, random_state=0)) == 1


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
        [
            [naive_kmeans_plus_plus_chances(X, a, b) + naive_kmeans_plus_plus_chances(X, b, a) for b in range(4)]
            for a in range(4)
        ]
    )
    upper = np.triu_indices(4, 1)
    np.testing.assert_allclose(counts[upper] / draws, expected[upper], atol=4 * (0.25 / draws) ** 0.5)


def test_third_center_follows_the_rule_too():
    """Rejection takes the centers of the same batch into account."""
    X = np.array([[0.0], [0.1], [10.0], [10.1], [20.0]])
    random = np.random.RandomState(0)
    hits = sum(
        len({0, 1} & set(chosen)) == 1 and len({2, 3} & set(chosen)) == 1 and 4 in chosen
        for chosen in (choose_landmarks(X, 3, "kmeans++", random_state=random) for _ in range(300))
    )
    assert hits >= 290  # three far groups: one center each, but for rare draws


def test_kmeans_plus_plus_measures_in_the_metric():
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], 30), np.random.default_rng(0).normal(size=90) * 100])
    metric = Mahalanobis.from_weights([1.0, 0.0])
    for seed in range(5):
        chosen = choose_landmarks(X, 3, "kmeans++", metric=metric, random_state=seed)
        assert set(X[chosen, 0]) == {0.0, 1.0, 2.0}


def test_tensors_and_memory_maps(choose, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.save(tmp_path / "X.npy", X)
    expected = choose(X, 10, random_state=0)
    for source in (torch.from_numpy(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        np.testing.assert_array_equal(choose(source, 10, random_state=0), expected)
    tiny = choose(X, 10, random_state=0, working_memory=1e-3)
    np.testing.assert_array_equal(tiny, expected)


def test_errors():
    X = np.zeros((3, 2))
    with pytest.raises(
        ValueError, match=r"landmarks='grid' .*'uniform', 'kmeans\+\+', 'leverage', 'leverage_hutchinson'"
    ):
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
