"""SubspaceClustering: laws of subspaces, choices without labels, new points, landmarks, and what data can go wrong."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info, threadpool_limits

import mercer
from mercer import SubspaceClustering
from mercer.clustering.expression import (
    SHORTHANDS,
    ElasticNetExpression,
    RidgeExpression,
    check_expression,
)
from mercer.clustering.subspace import Precision, graphs
from mercer.clustering.subspace.features import subspace_bases
from mercer.exceptions import DataWarning
from mercer.kernels import Polynomial
from mercer.metrics import clustering_accuracy, subspace_preserving_error
from tests.examples_of import numbers


def subspaces(sizes=(20, 22, 24), dimensions=(2, 3, 2), d=12, noise=0.0, seed=0):
    """Points of independent subspaces, in mixed order, and their labels."""
    random = np.random.default_rng(seed)
    parts = [random.normal(size=(n, k)) @ random.normal(size=(k, d)) for n, k in zip(sizes, dimensions, strict=True)]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = random.permutation(len(labels))
    X = np.vstack(parts)
    return (X + noise * random.normal(size=X.shape))[order], labels[order]


def fitted(X, n_clusters=3, **options):
    return SubspaceClustering(n_clusters, **{"random_state": 0, **options}).fit(X)


def agreement(model, labels):
    return adjusted_rand_score(labels, model.labels_)


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHORTHANDS)
def test_clean_independent_subspaces_are_recovered(name):
    X, labels = subspaces()
    with warnings.catch_warnings():
        # A pursuit that needs two points to express a third may leave a subspace in two parts.
        warnings.filterwarnings("ignore", "the affinity has 4 connected components", DataWarning)
        model = fitted(X, self_expression=name, ridge=1e-6, truncate=None, feature_learning="none")
    assert agreement(model, labels) > (0.8 if name == "omp" else 0.999)
    assert name == "omp" or sorted(model.dimensions_.tolist()) == [2, 2, 3]
    assert subspace_preserving_error(model.coef_, labels) < 1e-3


def test_the_default_recovers_subspaces_with_noise_and_says_what_they_are():
    X, labels = subspaces(noise=0.05)
    model = fitted(X)
    assert agreement(model, labels) == 1.0
    for cluster, basis in enumerate(model.bases_):
        assert basis.shape == (model.dimensions_[cluster], 12)
        np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
        own = X[model.labels_ == cluster]
        assert np.square(own @ basis.T).sum() >= 0.98 * np.square(own).sum()


@pytest.mark.parametrize("name", [*SHORTHANDS, "precision", "covariance"])
def test_rotation_scale_and_order_change_nothing(name):
    X, _ = subspaces(noise=0.1)
    options = {"feature_learning": name} if name not in SHORTHANDS else {"self_expression": name, "n_iter": 0}
    reference = fitted(X, **options).labels_
    rotation = np.linalg.qr(numbers(12, 12, seed=3))[0]
    order = np.random.default_rng(1).permutation(len(X))
    lengths = np.random.default_rng(2).uniform(0.1, 10.0, size=(len(X), 1))
    assert adjusted_rand_score(reference, fitted(X @ rotation, **options).labels_) == 1.0
    assert adjusted_rand_score(reference, fitted(1e3 * X * lengths, **options).labels_) == 1.0
    assert adjusted_rand_score(reference[order], fitted(X[order], **options).labels_) == 1.0


@pytest.mark.filterwarnings("ignore:the affinity has 8 connected components")  # as above
@pytest.mark.parametrize("name", SHORTHANDS)
def test_predict_agrees_with_the_labels_of_the_fit(name):
    X, labels = subspaces((60, 60, 60))
    model = fitted(X[:150], self_expression=name)
    assert np.mean(model.predict(X[:150]) == model.labels_) >= 0.99
    assert name == "omp" or adjusted_rand_score(labels[150:], model.predict(X[150:])) > 0.9


def test_predict_goes_through_the_learned_projection():
    X, labels = subspaces((60, 60, 60), d=80, noise=0.02)  # fewer rows than columns: in their span
    model = fitted(X[:60], iterate="last", n_iter=1)
    assert model.metric_.kind == "full"
    assert np.mean(model.predict(X[:60]) == model.labels_) >= 0.99
    assert adjusted_rand_score(labels[60:], model.predict(X[60:])) > 0.9


def test_kernels_with_the_same_values_give_the_same_clusters():
    X, _ = subspaces(noise=0.1)
    first = fitted(X, kernel=Polynomial(2))
    second = fitted(X, kernel=lambda a, b: (a @ b.T) ** 2, normalize=True)
    assert adjusted_rand_score(first.labels_, second.labels_) == 1.0
    np.testing.assert_allclose(first.modularity_, second.modularity_, rtol=1e-6)


# ---- choices without labels -----------------------------------------------------------------------------------------


def test_the_largest_modularity_is_kept_and_iterate_0_is_a_candidate():
    X, _ = subspaces(noise=0.3)
    model = fitted(X, n_iter=2)
    found = [record["modularity"] for record in model.history_]
    chosen = [record for record in model.history_ if record["chosen"]]
    assert len(chosen) == 1
    assert chosen[0]["modularity"] == max(found) == model.modularity_
    assert (chosen[0]["iteration"], chosen[0]["ridge"]) == (model.n_iter_, model.ridge_)
    assert {record["iteration"] for record in model.history_} == {0, 1, 2}
    assert model.expression_.ridge == model.ridge_


def test_iterate_0_is_picked_where_projections_only_hurt():
    # Points of many random directions: whitening makes nothing clearer than what is there.
    X, _ = subspaces(noise=0.05)
    assert fitted(X, feature_learning=Precision(1e-9, inversion="algorithm"), n_iter=3).n_iter_ == 0


def test_feature_learning_is_picked_where_it_helps():
    """A direction that all points share hides the subspaces; the precision matrix shrinks it."""
    X, labels = subspaces((40, 40, 40), d=30, noise=0.02)
    X = X / np.linalg.norm(X, axis=1, keepdims=True) + 6.0 * numbers(1, 30, seed=5) / 30**0.5
    options = {"truncate": None, "ridge": 0.01}
    without, with_it = fitted(X, feature_learning="none", **options), fitted(X, n_iter=2, **options)
    assert with_it.n_iter_ > 0
    assert agreement(with_it, labels) >= agreement(without, labels)
    assert with_it.modularity_ > without.modularity_


def test_last_keeps_the_last_iterate():
    X, _ = subspaces(noise=0.3)
    model = fitted(X, iterate="last", n_iter=3, ridge=0.01)
    assert model.n_iter_ == 3
    assert model.history_[-1]["iteration"] == 3
    assert fitted(X, iterate="last", n_iter=2).n_iter_ == 2


def test_the_number_of_clusters_is_found():
    X, labels = subspaces(noise=0.02)
    model = fitted(X, n_clusters="auto", truncate=None)
    assert model.n_clusters_ == 3
    assert agreement(model, labels) == 1.0
    assert fitted(X, n_clusters="auto", truncate=None, max_clusters=2).n_clusters_ == 2


# ---- settings of the paper ------------------------------------------------------------------------------------------


def test_ridges_are_relative_unless_an_object_says_otherwise():
    X, _ = subspaces(noise=0.1)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    largest = np.linalg.eigvalsh(unit @ unit.T)[-1]
    relative = fitted(X, ridge=0.01, n_iter=1, iterate="last")
    own = RidgeExpression(ridge=0.01 * largest, relative=False)
    absolute = fitted(X, self_expression=own, n_iter=0)
    np.testing.assert_allclose(
        fitted(X, ridge=0.01, n_iter=0).coef_.toarray(), absolute.coef_.toarray(), rtol=1e-7, atol=1e-12
    )
    # Line 3 takes the object's ridge too: another one gives other features.
    alike, other = (fitted(X, self_expression=RidgeExpression(r), n_iter=1, iterate="last") for r in (0.01, 0.3))
    np.testing.assert_allclose(alike.coef_.toarray(), relative.coef_.toarray(), rtol=1e-7, atol=1e-12)
    assert not np.allclose(abs(other.metric_.factor), abs(alike.metric_.factor))


def test_features_are_not_learned_further_once_they_stop_helping():
    X, _ = subspaces(noise=0.05)
    model = fitted(X, feature_learning=Precision(1e-9, inversion="algorithm"), n_iter=5)
    assert model.n_iter_ == 0
    assert {record["iteration"] for record in model.history_} == {0, 1}


def test_both_inversions_compete_and_the_better_one_is_kept():
    X, _ = subspaces(noise=0.3)
    options = {"iterate": "last", "n_iter": 1, "ridge": 0.01}
    single = {
        name: fitted(X, feature_learning=Precision(inversion=name), **options).modularity_
        for name in ("algorithm", "lemma")
    }
    assert abs(single["algorithm"] - single["lemma"]) > 1e-3
    np.testing.assert_allclose(fitted(X, **options).modularity_, max(single.values()), rtol=1e-6)


def test_an_object_brings_its_own_settings():
    X, _ = subspaces(noise=0.1)
    own = fitted(X, self_expression=RidgeExpression(ridge=0.5), n_iter=0)
    np.testing.assert_allclose(own.coef_.toarray(), fitted(X, ridge=0.5, n_iter=0).coef_.toarray())
    assert fitted(X, self_expression=ElasticNetExpression(), n_iter=1).coef_.nnz < 0.5 * len(X) ** 2
    assert check_expression("omp").is_sparse


# ---- landmarks ------------------------------------------------------------------------------------------------------


def test_landmarks_find_the_same_clusters():
    X, labels = subspaces((150, 150, 150), noise=0.02)
    model = fitted(X, n_landmarks=80)
    assert agreement(model, labels) == 1.0
    assert model.coef_.shape == (80, 450)
    assert model.affinity_matrix_ is None
    assert len(np.unique(model.landmark_indices_)) == 80
    own = model.coef_.toarray()[np.arange(80), model.landmark_indices_]
    assert not own.any()  # no point expresses itself
    assert np.mean(model.predict(X) == model.labels_) >= 0.99


def test_as_many_landmarks_as_points_are_no_landmarks():
    X, _ = subspaces(noise=0.05)
    assert fitted(X, n_landmarks=66).affinity_matrix_ is not None


def test_blocks_do_not_change_the_result():
    X, _ = subspaces(noise=0.05)
    large, small = (fitted(X, n_landmarks=30, working_memory=memory) for memory in (64.0, 0.01))
    np.testing.assert_allclose(large.coef_.toarray(), small.coef_.toarray(), atol=1e-10)
    np.testing.assert_array_equal(large.labels_, small.labels_)


# ---- what data can go wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHORTHANDS)
def test_zero_rows_and_duplicates(name):
    X, labels = subspaces(noise=0.005)
    X[3] = 0.0
    X[10:13] = X[9]
    labels[10:13] = labels[9]
    model = fitted(X, self_expression=name)
    rest = np.arange(len(X)) != 3
    # Pursuits express a copy by another copy alone, and a noisy point by as many others as there are dimensions.
    assert name == "omp" or adjusted_rand_score(labels[rest], model.labels_[rest]) > 0.9
    assert 0 <= model.labels_[3] < 3
    largest = np.bincount(model.labels_).argmax()
    assert model.predict(np.zeros((1, 12)))[0] == largest


def test_all_rows_zero():
    with pytest.raises(ValueError, match="all rows of X are zero"):
        fitted(np.zeros((10, 3)))


def test_all_rows_equal():
    with pytest.warns(DataWarning, match="X has 1 distinct rows"):
        model = fitted(np.ones((10, 3)))  # no clusters to find, and none are promised
    assert model.labels_.shape == (10,)
    assert model.dimensions_.tolist() == [1, 1, 1]


def test_clusters_without_points_warn(monkeypatch):
    X, _ = subspaces(noise=0.05)
    monkeypatch.setattr(graphs, "assign", lambda *args, **options: np.zeros(len(X), dtype=int))
    with pytest.warns(DataWarning, match="n_clusters=3, but 1 clusters have points.*Fewer clusters"):
        model = fitted(X)
    assert model.dimensions_.tolist()[1:] == [0, 0]


def test_a_disconnected_affinity_warns():
    X, _ = subspaces((12, 12, 12, 12), (1, 1, 1, 1))
    with pytest.warns(DataWarning, match="4 connected components"):
        fitted(X, n_clusters=2, self_expression="omp", feature_learning="none")


BAD = {
    "more clusters than points": ({"n_clusters": 100}, r"n_clusters=100 .*at most 66"),
    "no clusters": ({"n_clusters": 0}, "n_clusters=0"),
    "clusters by a word": ({"n_clusters": "many"}, "n_clusters='many'"),
    "expression": ({"self_expression": "ridges"}, "self_expression='ridges'.*'ridge', 'least_squares'"),
    "kernel": ({"kernel": "gauss"}, "kernel='gauss'"),
    "feature learning": ({"feature_learning": "agop"}, "feature_learning='agop'.*'precision', 'covariance', 'none'"),
    "n_iter": ({"n_iter": -1}, "n_iter=-1"),
    "iterate": ({"iterate": "best"}, "iterate='best'"),
    "ridge": ({"ridge": 0.0}, "ridge=0.0 .*above 0"),
    "ridge by a word": ({"ridge": "small"}, "ridge='small'"),
    "truncate": ({"truncate": 0}, "truncate=0"),
    "truncate by a word": ({"truncate": "all"}, "truncate='all'"),
    "assignment": ({"assign_labels": "discretize"}, "assign_labels='discretize'"),
    "max_clusters": ({"max_clusters": 1}, "max_clusters=1"),
    "energy": ({"energy": 1.5}, "energy=1.5"),
    "n_landmarks": ({"n_landmarks": 0}, "n_landmarks=0"),
    "affinity": ({"affinity": "sparse"}, "affinity='sparse'.*'scaled', 'plain', 'doubly_stochastic'"),
    "memory": ({"working_memory": 0.0}, "working_memory=0.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named(name):
    options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        fitted(subspaces()[0], **options)


def test_a_fit_repeats_itself_and_leaves_its_input_alone():
    X, _ = subspaces(noise=0.3)
    before = X.copy()
    first, second = fitted(X), fitted(X)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.affinity_matrix_.toarray(), second.affinity_matrix_.toarray())
    np.testing.assert_array_equal(X, before)


def test_models_are_saved(tmp_path):
    X, _ = subspaces(noise=0.05)
    model = fitted(X, n_iter=1, iterate="last")
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.coef_.toarray(), model.coef_.toarray())


def test_the_default_is_silent():
    X, _ = subspaces(noise=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(X).predict(X)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("normalize", [True, False])
def test_rows_of_the_fit_keep_their_clusters_when_there_are_more_columns(kernel, normalize):
    random = np.random.default_rng(0)
    centers = np.repeat(8.0 * random.normal(size=(3, 60)), 12, axis=0)
    X = centers + 0.1 * random.normal(size=centers.shape)
    model = SubspaceClustering(
        3, kernel=kernel, normalize=normalize, feature_learning="none", truncate=5, random_state=0
    ).fit(X)
    assert clustering_accuracy(np.repeat(range(3), 12), model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_bases_of_small_clusters_are_found_on_one_thread(monkeypatch):
    """With two threads that spin beside a busy process they took three quarters of all of a fit's processor time."""
    svd, threads = np.linalg.svd, []

    def watched(*args, **options):
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return svd(*args, **options)

    monkeypatch.setattr(np.linalg, "svd", watched)
    X, labels = subspaces()
    with threadpool_limits(2, user_api="blas"):
        subspace_bases(X, labels, len(np.unique(labels)), 0.98)
        assert any(pool["num_threads"] == 2 for pool in threadpool_info() if pool["user_api"] == "blas")
    assert set(threads) == {1}
