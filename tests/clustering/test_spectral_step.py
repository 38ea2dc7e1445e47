"""From coefficients to clusters: truncation, affinities, cuts, Laplacians by components, anchors, assignment."""

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from mercer import SubspaceClustering
from mercer.clustering.affinity import modularity, truncated, without_small
from mercer.clustering.spectral import (
    ASSIGNMENTS,
    Spectrum,
    assign,
    cluster_qr,
    eigengap,
    joined_spectrum,
    laplacian_spectrum,
)
from mercer.clustering.subspace.graphs import Graph, proposed_labels, sits_on_specks, voted_labels
from mercer.clustering.subspace.landmark_graph import landmark_modularity, landmark_spectrum, landmark_weights
from mercer.exceptions import DataWarning
from tests.examples_of import numbers


def random_state(seed=0):
    return np.random.RandomState(seed)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def naive_laplacian(W):
    n = len(W)
    degrees = W.sum(axis=1)
    L = np.eye(n)
    for i in range(n):
        for j in range(n):
            if W[i, j]:
                L[i, j] -= W[i, j] / np.sqrt(degrees[i] * degrees[j])
    return L


def naive_modularity(W, labels):
    """By pairs: what joins two points of a cluster, less what their degrees would put there by chance."""
    total, degrees = W.sum(), W.sum(axis=1)
    result = 0.0
    for i in range(len(W)):
        for j in range(len(W)):
            if labels[i] == labels[j]:
                result += W[i, j] / total - degrees[i] * degrees[j] / total**2
    return result


def blocks(sizes=(6, 7, 8), noise=0.05, seed=0):
    """An affinity with blocks, and their labels."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    W = np.abs(numbers(len(labels), len(labels), seed=seed)) * np.where(labels[:, None] == labels, 1.0, noise)
    W = W + W.T
    np.fill_diagonal(W, 0.0)
    return W, labels


def test_truncation_keeps_the_largest_by_absolute_value():
    C = torch.tensor([[3.0, -1.0, 0.0], [-4.0, 2.0, 0.0], [1.0, -5.0, 0.0], [0.5, 0.1, 0.0]])
    kept = truncated(C, 2)
    np.testing.assert_array_equal(dense(kept), [[3, 0, 0], [-4, 2, 0], [0, -5, 0], [0, 0, 0]])
    assert kept.nnz == 4  # zeros are not kept as entries
    np.testing.assert_array_equal(dense(truncated(C, 9)), C)
    assert isinstance(truncated(C, None), np.ndarray)
    assert without_small(C).nnz == 8


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_modularity_is_what_chance_would_not_put_inside(form):
    W, labels = blocks()
    for found in (labels, random_state().randint(0, 3, len(labels))):
        assert modularity(form(W), found) == pytest.approx(naive_modularity(W, found))
    assert modularity(form(W), labels) > modularity(form(W), random_state().permutation(labels))
    assert modularity(form(np.zeros((3, 3))), np.array([0, 1, 1])) == 0.0


def test_a_speck_is_no_cluster():
    """Two halves joined by some affinity, and a speck joined by none: the halves are the better clusters."""
    W = np.ones((20, 20)) * 0.2
    W[:10, :10] = W[10:, 10:] = 1.0
    W[-2:, :-2] = W[:-2, -2:] = 0.0
    halves, speck = np.repeat([0, 1], 10), np.repeat([0, 1], [18, 2])
    assert modularity(W, halves) > modularity(W, speck)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_spectrum_is_that_of_the_laplacian(form):
    W, _ = blocks()
    values, vectors, n_parts, _ = laplacian_spectrum(form(W), 5, random_state())
    L = naive_laplacian(W)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L)[:5], atol=1e-10)
    np.testing.assert_allclose(L @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-9)
    assert n_parts == 1


def test_lanczos_finds_what_the_whole_decomposition_finds():
    W, _ = blocks((220, 230, 200))
    W[W < 1.5] = 0.0
    few = laplacian_spectrum(sparse.csr_array(W), 4, random_state())
    whole = laplacian_spectrum(W, 4, random_state())
    np.testing.assert_allclose(few.eigenvalues, whole.eigenvalues, atol=1e-8)
    again = laplacian_spectrum(sparse.csr_array(W), 4, random_state())
    np.testing.assert_array_equal(few.vectors, again.vectors)


@pytest.mark.parametrize("sizes", [(5, 6, 7), (600, 601, 602)])
def test_every_component_adds_an_eigenvalue_of_zero(sizes):
    labels = np.repeat(np.arange(3), sizes)
    # Each a ring with some chords.
    parts = []
    for i, n in enumerate(sizes):
        ring = sparse.csr_array(sparse.random(n, n, min(0.5, 20 / n), random_state=i)) + sparse.eye_array(n, k=1)
        parts.append(ring + ring.T)
    W = sparse.csr_array(sparse.block_diag(parts))
    spectrum = laplacian_spectrum(W, 6, random_state())
    assert spectrum.n_parts == 3
    np.testing.assert_allclose(spectrum.eigenvalues[:3], 0.0, atol=1e-9)
    assert spectrum.eigenvalues[3] > 1e-3
    assert adjusted_rand_score(labels, assign(spectrum, 3, random=random_state())) == 1.0


def test_points_without_affinity_are_nobodys_component():
    W, labels = blocks()
    W = np.pad(W, (0, 2))
    spectrum = laplacian_spectrum(W, 4, random_state())
    assert spectrum.n_parts == 1
    assert not spectrum.vectors[-2:].any()
    found = assign(spectrum, 3, random=random_state())
    assert adjusted_rand_score(labels, found[:-2]) == 1.0
    empty = laplacian_spectrum(np.zeros((4, 4)), 2, random_state())
    assert not empty.vectors.any()
    assert empty.n_parts == 0


def test_eigengap_counts_the_clusters():
    W, _ = blocks()
    assert eigengap(laplacian_spectrum(W, 8, random_state()).eigenvalues) == 3
    assert eigengap(np.array([0.0, 0.9, 1.0, 1.0])) == 2  # one cluster is no clustering
    assert eigengap(np.array([0.0, 0.1, 0.2, 0.3, 0.9])) == 4
    assert eigengap(np.array([0.0, 0.5])) == 2


@pytest.mark.parametrize("method", ASSIGNMENTS)
def test_assignment_finds_blocks(method):
    W, labels = blocks()
    spectrum = laplacian_spectrum(W, 4, random_state())
    found = assign(spectrum, 3, method=method, random=random_state(1))
    assert adjusted_rand_score(labels, found) == 1.0


def test_plain_k_means_is_that_of_scikit_learn():
    """On points of very different degrees, where unit rows give other clusters."""
    random = np.random.default_rng(3)
    W = random.uniform(size=(60, 60)) ** 4 * np.outer(np.repeat([0.05, 1.0, 3.0], 20), np.repeat([0.05, 1.0, 3.0], 20))
    W = W + W.T - np.diag(2 * np.diag(W))
    peer = SpectralClustering(4, affinity="precomputed", n_init=100, random_state=0).fit(W).labels_
    spectrum = laplacian_spectrum(W, 4, random_state())
    found = {
        name: assign(spectrum, 4, method=name, n_init=100, random=random_state()) for name in ("plain_kmeans", "kmeans")
    }
    assert adjusted_rand_score(peer, found["plain_kmeans"]) > 0.95
    assert adjusted_rand_score(peer, found["kmeans"]) < 0.9


@pytest.mark.parametrize("n", [60, 700])  # decomposed densely, and by Lanczos steps
def test_the_joined_spectrum_is_that_of_the_graph_with_all_points_joined(n):
    """Dense or sparse; t, the mean degree, is spread over all points."""
    W = with_specks(n)[0]
    whole = W + W.sum(axis=1).mean() / n
    expected = np.sort(np.linalg.eigvalsh(naive_laplacian(whole)))[:5]
    for matrix in (W, sparse.csr_array(W)):
        spectrum = joined_spectrum(matrix, 5, random_state())
        np.testing.assert_allclose(spectrum.eigenvalues, expected, atol=1e-6)
        left = naive_laplacian(whole) @ spectrum.vectors - spectrum.vectors * spectrum.eigenvalues
        np.testing.assert_allclose(left, 0.0, atol=1e-4)
        np.testing.assert_allclose(spectrum.degrees, whole.sum(axis=1))
    assert joined_spectrum(sparse.csr_array((4, 4)), 2, random_state()).n_parts == 0


def test_specks_that_hang_by_a_thread_mislead_the_plain_spectrum_and_not_the_joined_one():
    W, labels = with_specks(200)
    graph = Graph(W, W, through_landmarks=False)
    plain, joined = (step(W, 3, random_state()) for step in (laplacian_spectrum, joined_spectrum))
    assert adjusted_rand_score(labels, assign(plain, 2, random=random_state())) < 0.1
    found = assign(joined, 2, random=random_state())
    assert adjusted_rand_score(labels, found) > 0.9
    best = proposed_labels(graph, plain, 2, "auto", random_state())
    np.testing.assert_array_equal(best, found)


def test_a_second_proposal_leaves_the_random_numbers_of_the_first_alone():
    """Where the plain spectrum wins, "auto" is "kmeans", and so is all that is drawn after it."""
    W, _ = blocks()
    graph, spectrum = Graph(W, W, through_landmarks=False), laplacian_spectrum(W, 3, random_state())
    one, other = random_state(), random_state()
    labels = [proposed_labels(graph, spectrum, 3, name, r) for name, r in (("auto", one), ("kmeans", other))]
    np.testing.assert_array_equal(*labels)
    assert one.randint(1000) == other.randint(1000)


def test_votes_compete_where_points_are_joined_through_landmarks():
    C = sparse.csc_array(sparse.block_diag([np.ones((4, 20))] * 2))
    truth = np.repeat([0, 1], 20)
    graph = Graph(C, landmark_weights(C), through_landmarks=True)
    useless = Spectrum(np.zeros(2), np.tile([1.0, 0.0], (40, 1)), 1)
    voted = voted_labels(C, np.repeat([0, 1], 4), truth)
    np.testing.assert_array_equal(voted, truth)
    np.testing.assert_array_equal(proposed_labels(graph, useless, 2, "auto", random_state(), voted), truth)
    assert len(np.unique(proposed_labels(graph, useless, 2, "kmeans", random_state(), voted))) == 1


def with_specks(n):
    """Two clusters with some affinity between all points, and pairs that hardly anything joins to them."""
    labels = np.repeat([0, 1], n // 2)
    W = np.where(labels[:, None] == labels, 1.0, 0.25)
    pairs = np.arange(0, n, n // 5)
    for i in (*pairs, *(pairs + 1)):
        W[i] *= 0.002
        W[:, i] *= 0.002
    W[pairs, pairs + 1] = W[pairs + 1, pairs] = 1.0
    np.fill_diagonal(W, 0.0)
    return W, labels


def test_cluster_qr_is_deterministic_and_blind_to_signs_and_rotations():
    W, labels = blocks()
    E = laplacian_spectrum(W, 3, random_state()).vectors
    rotation = np.linalg.qr(numbers(3, 3))[0]
    for turned in (E, E * [1, -1, -1], E @ rotation):
        assert adjusted_rand_score(labels, cluster_qr(turned)) == 1.0


def test_more_components_than_clusters_stay_whole():
    W = dense(sparse.block_diag([np.ones((4, 4))] * 3))
    found = assign(laplacian_spectrum(W, 4, random_state()), 2, random=random_state())
    assert all(len(np.unique(found[4 * i : 4 * i + 4])) == 1 for i in range(3))
    assert len(np.unique(found)) == 2


def anchors(n=40, m=8, seed=0):
    C = np.abs(numbers(m, n, seed=seed))
    C[C < 0.8] = 0.0
    C[0, ~C.any(axis=0)] = 1.0
    return C


def test_landmark_weights_sum_to_one():
    C = anchors()
    C[:, 3] = 0.0
    sums = np.asarray(landmark_weights(sparse.csc_array(C)).sum(axis=1)).ravel()
    np.testing.assert_allclose(sums, np.where(np.arange(40) == 3, 0.0, 1.0))


def test_landmark_spectrum_and_modularity_are_those_of_the_graph_through_landmarks():
    Z = landmark_weights(sparse.csc_array(anchors()))
    W = dense(Z) @ np.diag(1 / dense(Z).sum(axis=0)) @ dense(Z).T
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    spectrum = landmark_spectrum(Z, 5)
    whole = laplacian_spectrum(W, 5, random_state())
    np.testing.assert_allclose(spectrum.eigenvalues, whole.eigenvalues, atol=1e-10)
    np.testing.assert_allclose(
        naive_laplacian(W) @ spectrum.vectors, spectrum.vectors * spectrum.eigenvalues, atol=1e-9
    )
    np.testing.assert_allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(5), atol=1e-9)
    labels = random_state().randint(0, 3, 40)
    assert landmark_modularity(Z, labels) == pytest.approx(naive_modularity(W, labels))


def test_a_landmark_that_expresses_nobody_is_no_trouble():
    C = anchors()
    C[5] = 0.0
    C[0, ~C.any(axis=0)] = 1.0
    spectrum = landmark_spectrum(landmark_weights(sparse.csc_array(C)), 20)
    assert np.all(np.isfinite(spectrum.vectors))
    assert len(spectrum.eigenvalues) == 7


def test_specks_are_a_tenth_of_a_cluster():
    vectors = np.zeros((100, 2))
    vectors[:50, 0], vectors[50:, 1] = 0.1, 0.2
    assert not sits_on_specks(vectors)
    vectors[:, 1] = np.arange(100) < 4
    assert sits_on_specks(vectors)


def test_points_that_nothing_joins_are_no_specks():
    """Rows at right angles express nothing: there is no affinity at all, and no eigenvector sits anywhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert not sits_on_specks(np.zeros((10, 3)))
        with pytest.warns(DataWarning):
            SubspaceClustering(3, random_state=0).fit(np.eye(10))


def test_clusters_of_unequal_size_are_not_evened_out():
    # Modularity prefers equal sizes; where no eigenvector sits on a speck, nothing but the plain step has a say.
    sizes = (60, 30, 10)
    truth = np.repeat(np.arange(3), sizes)
    W = np.where(truth[:, None] == truth, 1.0, 0.02)
    np.fill_diagonal(W, 0.0)
    graph = Graph(W, W, through_landmarks=False)
    spectrum = laplacian_spectrum(W, 3, random_state())
    labels = [proposed_labels(graph, spectrum, 3, name, random_state()) for name in ("auto", "kmeans")]
    np.testing.assert_array_equal(*labels)
