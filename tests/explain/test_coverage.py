"""The curve of class coverage: equal to counting, and its random order to the mean over drawn orders."""

import numpy as np
import pytest

from mercer.explain import coverage
from mercer.metrics import class_coverage


def test_curves_and_tables_are_what_counting_gives():
    random = np.random.default_rng(0)
    A, labels = random.normal(size=(30, 4)), random.choice(["a", "b", "c", "d"], size=30, p=[0.6, 0.2, 0.1, 0.1])
    found = coverage(A, labels)
    order = np.argsort(-np.linalg.norm(A, axis=1))
    naive = [len(set(labels[order[: k + 1]])) for k in range(30)]
    np.testing.assert_array_equal(found.curve, naive)
    assert found.kappa == class_coverage(A, labels) == naive.index(len(set(labels))) + 1 == found.first.max()
    assert found.kappa_best == len(set(labels)) == found.curve_best[-1]
    drawn = [random.permutation(labels) for _ in range(4000)]
    for k in (1, 3, 10, 30):
        assert found.curve_random[k - 1] == pytest.approx(np.mean([len(set(d[:k])) for d in drawn]), abs=0.05)
    for name, by_chance in zip(found.classes, found.first_random, strict=True):
        assert by_chance == pytest.approx(np.mean([list(d).index(name) + 1 for d in drawn]), rel=0.06)
    assert f"kappa {found.kappa}" in str(found)


def test_labels_must_fit():
    with pytest.raises(ValueError, match="labels"):
        coverage(np.ones((3, 2)), ["a", "b"])
