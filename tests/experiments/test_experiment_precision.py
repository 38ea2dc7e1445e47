"""The experiment on subspace clustering: its cases, its toys, and a trial of faces on data made here."""

import numpy as np
import pytest

from experiments import paired
from experiments.precision_subspace_clustering import cases as made
from experiments.precision_subspace_clustering import geometry, lemma, runs, toy
from experiments.precision_subspace_clustering.experiment import EXPERIMENT
from mercer.datasets import Dataset


def test_the_papers_protocol():
    assert made.TRIALS == {10: 15, 20: 10, 30: 5, 38: 1}
    full = {case.name: case for case in EXPERIMENT.cases(False)}
    assert full[made.yale(10, made.DEFAULT)].settings["method"] == {}  # one default for all
    for value in (0.05, 0.1, 0.2, 0.3, 0.5):
        written = full[made.yale(10, made.algorithm_1(value))].settings["method"]
        assert written == {"paper": "precision_clustering", "lambda_": value}
        assert full[made.yale(10, made.ktrr(value))].settings["method"] == {"paper": "ktrr", "lambda_": value}
    assert all(made.yale(k, name) in full for k in made.SUBJECTS for name in made.FOR_ALL)
    assert len(full) == len(EXPERIMENT.cases(False))
    quick = {case.name for case in EXPERIMENT.cases(True)}
    assert not any(name in full for name in quick if "yaleb" in name)  # two trials do not stand for all
    assert made.on(made.TWO_TRIALS, made.DEFAULT) in quick


def faces():
    """Images of 40 people, eight each, every person in a plane of their own."""
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(8, 2)) @ random.normal(size=(2, 48 * 42)) for _ in range(40)])
    return Dataset(X.reshape(-1, 48, 42).astype(np.float32), np.repeat(np.arange(40), 8))


def test_a_trial_takes_consecutive_subjects(monkeypatch):
    seen = {}

    def load(name):
        seen["name"] = name
        return faces()

    monkeypatch.setattr(runs.datasets, "load", load)
    original = runs.fitted

    def fitted(X, k, method, seed):
        seen["X"], seen["k"] = X, k
        return original(X, k, method, seed)

    monkeypatch.setattr(runs, "fitted", fitted)
    measures = runs.run_yale({"subjects": 3, "method": {"ridge": 1e-4, "truncate": None, "n_iter": 0}}, 2)
    assert seen["name"] == "yaleb"
    np.testing.assert_array_equal(seen["X"], faces().X.reshape(320, -1)[4 * 8 : 7 * 8])
    assert measures["nmi"] == measures["ari"] == measures["accuracy"] == 1.0
    assert measures["outside of the class"] < 0.05


def test_toys_have_the_papers_subspaces():
    X, labels = toy.toy_points("as printed", one_sided=False, seed=0)
    assert X.shape == (150, 5)
    for k, first in enumerate([(1, 1.3, 0, 0, 0), (1.3, 1, 0, 0, 0), (5.2, 5**0.5, 1, 5**0.5, 0)]):
        basis = np.vstack([first, np.eye(5)[2:]])
        rows = X[labels == k]
        inside = rows @ np.linalg.pinv(basis) @ basis
        np.testing.assert_allclose(inside, rows, atol=1e-10)
    assert np.all(toy.toy_points("fractions", one_sided=True, seed=0)[0][:, 0] > 0)


def test_every_method_can_be_made():
    for name, method in made.METHODS.items():
        model = runs.estimator(4, method, 3)
        assert (model.n_clusters, model.random_state) == (4, 3), name
    low_rank = runs.estimator(4, made.FRAMEWORK[made.shaped("data", "elliptical of rank 100")], 0).feature_learning
    assert (type(low_rank).__name__, low_rank.space, low_rank.n_directions) == ("Covariance", "data", 100)


@pytest.mark.parametrize("step", ["line 6", "lemma"])
def test_the_toys_kernel_matrix_turns_into_blocks(step):
    measures = toy.run_toy(toy.TOYS[toy.toy_name("quadratic", "as printed", step)], 0)
    assert measures["kernel 0"] < 0.45
    assert measures["kernel 10"] > 0.7
    assert measures["angle after"] > measures["angle before"]


def test_lemma_1_by_sampling():
    measures = lemma.run_lemma({"shrinkages": [1e-2, 1e-6]}, 0)
    assert measures["sampled 0.01"] < 0.1
    assert measures["sampled 1e-06"] < 0.1
    assert measures["identity 1e-06"] < 0.5 * measures["identity 0.01"]


def test_angles_and_distances_between_clusters():
    rows, labels = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 1])
    found = geometry.between_clusters(rows, labels)
    np.testing.assert_allclose([found["angle"], found["distance"]], [90.0, 2**0.5])
    np.testing.assert_allclose(found["separation"], 2**0.5 / 2)
    tilted = np.array([[1.0, 0.0], [-(0.5**0.5), -(0.5**0.5)]])
    np.testing.assert_allclose(geometry.between_clusters(tilted, np.array([0, 1]))["angle"], 45.0)


def test_paired_intervals():
    low, high = paired.interval([1.0, 2.0, 3.0])
    np.testing.assert_allclose([low, high], [2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5], rtol=1e-6)
    assert not paired.is_above_zero([1.0, 2.0, 3.0])
    assert paired.is_above_zero([1.9, 2.0, 2.1])
    assert paired.interval([1.0]) is None
    assert paired.is_above_zero([1.0])


def test_rows_of_a_set_include_its_test_rows(monkeypatch):
    data = Dataset(np.zeros((4, 2)), np.arange(4), np.ones((2, 2)), np.arange(2))
    monkeypatch.setattr(runs.datasets, "load", lambda name: data)
    assert runs.rows_of("mnist", None, 0)[0].shape == (6, 2)
    X, y = runs.rows_of("mnist", 3, 0)
    assert X.shape == (3, 2)
    assert len(y) == 3


@pytest.mark.parametrize("method", [None, {"n_iter": 0}, {"paper": "ktrr", "lambda_": 0.1}])
def test_other_sets_are_scored(method, monkeypatch):
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(20, 2)) @ random.normal(size=(2, 6)) for _ in range(2)])
    monkeypatch.setattr(runs, "rows_of", lambda *args: (X, np.repeat([0, 1], 20)))
    measures = runs.run_set({"data": "made", "rows": None, "method": method}, 0)
    assert 0.0 <= measures["nmi"] <= 1.0
    assert ("ridge" in measures) == (method is not None)
