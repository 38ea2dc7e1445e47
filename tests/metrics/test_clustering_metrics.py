"""Metrics of clusters and affinities against loops over points, and the numerical rank by energy."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

import mercer.metrics
from mercer.exceptions import InvalidParameterError
from mercer.metrics import (
    block_mass,
    clustering,
    clustering_accuracy,
    connectivity,
    numerical_rank,
    subspace_preserving_error,
)
from tests.examples_of import QUICK, numbers

KINDS = {
    "array": np.asarray,
    "list": lambda A: A.tolist(),
    "tensor": torch.from_numpy,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
}
by_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def naive_accuracy(true, pred):
    """The best over all ways of naming each cluster by a class or by none."""
    clusters, classes = sorted(set(pred)), [*sorted(set(true)), *[None] * len(set(pred))]
    return max(
        np.mean([dict(zip(clusters, names, strict=True))[p] == t for t, p in zip(true, pred, strict=True)])
        for names in set(itertools.permutations(classes, len(clusters)))
    )


def naive_error(C, labels):
    shares = []
    for i in range(len(C)):
        other = sum(abs(C[j, i]) for j in range(len(C)) if labels[j] != labels[i])
        total = sum(abs(C[j, i]) for j in range(len(C)))
        shares.append(other / total if total else 1.0)
    return np.mean(shares)


def naive_connectivity(A, labels):
    """For each class, the second smallest eigenvalue of the Laplacian, 0 where it has none."""
    values = []
    for k in sorted(set(labels)):
        rows = [i for i, label in enumerate(labels) if label == k]
        W = np.array([[0.0 if i == j else A[i, j] for j in rows] for i in rows])
        d = W.sum(axis=1)
        if len(rows) == 1 or (d == 0).any():
            values.append(0.0)
            continue
        laplacian = np.eye(len(rows)) - W / np.sqrt(np.outer(d, d))
        values.append(np.sort(np.linalg.eigvals(laplacian).real)[1])
    return values


def naive_mass(M, labels, diagonal):
    pairs = [(i, j) for i in range(len(M)) for j in range(len(M)) if diagonal or i != j]
    return sum(abs(M[i, j]) for i, j in pairs if labels[i] == labels[j]) / sum(abs(M[i, j]) for i, j in pairs)


# accuracy


@QUICK
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_accuracy_naive_twin(pairs):
    true, pred = (list(labels) for labels in zip(*pairs, strict=True))
    assert clustering_accuracy(true, pred) == pytest.approx(naive_accuracy(true, pred))
    assert clustering_accuracy(pred, true) == pytest.approx(clustering_accuracy(true, pred))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "b", "a"],
        np.array([3, -1, -1, 3]),
        np.array([0.5, 1.5, 1.5, 0.5]),
        torch.tensor([5, 6, 6, 5]),
        [True, False, False, True],
        np.array(["x", 1, 1, "x"], dtype=object),
        np.array([("y",), 2.5, 2.5, ("y",)], dtype=object),
        np.array(["2020-01-01", "2021-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
    ],
    ids=str,
)
def test_labels_of_any_kind(labels):
    assert clustering_accuracy(labels, [1, 0, 0, 1]) == clustering_accuracy([1, 0, 0, 1], labels) == 1.0
    assert clustering_accuracy(labels, [1, 1, 0, 1]) == 0.75
    assert type(clustering_accuracy(labels, [1, 0, 0, 1])) is float


def test_accuracy_by_hand():
    assert clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 0]) == 1.0
    assert clustering_accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25  # one cluster a class
    assert clustering_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25
    # Taking the largest overlap first would give 3 of 7, the best assignment has 4.
    assert clustering_accuracy([0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0, 0]) == pytest.approx(4 / 7)


# subspace preserving


def example(n=9, seed=0):
    random = np.random.default_rng(seed)
    C = random.normal(size=(n, n)) * (random.random((n, n)) < 0.5)
    np.fill_diagonal(C, 0.0)
    C[:, 2] = 0.0
    return C, ["a", "b", "a", "c", "b", "a", "b", "b", "a"][:n]


@by_kind
def test_preserving_error_naive_twin(kind):
    C, labels = example()
    assert subspace_preserving_error(kind(C), labels) == pytest.approx(naive_error(C, labels))
    assert naive_error(C, labels) != pytest.approx(naive_error(C.T, labels))
    assert type(subspace_preserving_error(kind(C), labels)) is float


def test_preserving_error_at_its_ends():
    inside = np.kron(np.eye(2), np.ones((3, 3)))
    labels = [0, 0, 0, 1, 1, 1]
    assert subspace_preserving_error(inside, labels) == 0.0
    assert subspace_preserving_error(-inside, labels) == 0.0
    assert subspace_preserving_error(1 - inside, labels) == 1.0
    assert subspace_preserving_error(np.zeros((6, 6)), labels) == 1.0  # not expressed at all
    assert subspace_preserving_error(np.ones((6, 6)), labels) == 0.5
    scales = 10.0 ** np.arange(6)
    C, labels = example()
    assert subspace_preserving_error(C[:6, :6] * scales, labels[:6]) == pytest.approx(naive_error(C[:6, :6], labels))


# connectivity


def graph(n=12, seed=0):
    random = np.random.default_rng(seed)
    A = random.random((n, n)) * (random.random((n, n)) < 0.6)
    return A + A.T


@by_kind
@pytest.mark.parametrize("seed", range(3))
def test_connectivity_naive_twin(kind, seed):
    A, labels = graph(seed=seed), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]
    values = naive_connectivity(A, labels)
    assert min(values) > 0.01
    assert connectivity(kind(A), labels) == pytest.approx(min(values))
    assert connectivity(kind(A), labels, average=True) == pytest.approx(np.mean(values))
    assert type(connectivity(kind(A), labels)) is float


def test_connectivity_by_hand():
    for n in (2, 5):
        assert connectivity(np.ones((n, n)), [0] * n) == pytest.approx(n / (n - 1))
    ring = np.roll(np.eye(8), 1, axis=0) + np.roll(np.eye(8), -1, axis=0)
    assert connectivity(ring, [0] * 8) == pytest.approx(1 - np.cos(2 * np.pi / 8))
    assert connectivity(7 * ring + 3 * np.eye(8), [0] * 8) == pytest.approx(1 - np.cos(2 * np.pi / 8))
    # Cut in two halves, the ring is two paths of four.
    paths = naive_connectivity(ring, [0] * 4 + [1] * 4)
    assert connectivity(ring, [0] * 4 + [1] * 4) == pytest.approx(paths[0]) == pytest.approx(paths[1])


@by_kind
def test_classes_that_fall_apart_count_as_zero(kind):
    A = np.kron(np.eye(3), np.ones((2, 2)))
    assert connectivity(kind(A), [0, 0, 0, 0, 1, 1]) == 0.0
    assert connectivity(kind(A), [0, 0, 0, 0, 1, 1], average=True) == pytest.approx(1.0)
    assert connectivity(kind(A), [0, 0, 1, 1, 2, 3], average=True) == pytest.approx(1.0)  # two pairs, two single points
    # A point without an edge in its class.
    assert connectivity(kind(np.array([[0, 1.0, 1], [1, 0, 0], [1, 0, 0]])), [1, 0, 0]) == 0.0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_large_classes_by_lanczos_steps(kind, monkeypatch):
    A, labels = graph(40, seed=1), np.arange(40) % 2
    whole = connectivity(A, labels, average=True)
    calls = []
    eigsh = clustering.eigsh

    def spy(*args, **options):
        calls.append(args[0].shape[0])
        return eigsh(*args, **options)

    monkeypatch.setattr(clustering, "eigsh", spy)
    assert connectivity(kind(A), labels, average=True) == whole
    assert not calls
    monkeypatch.setattr(clustering, "FEW_POINTS", 19)
    assert connectivity(kind(A), labels, average=True) == pytest.approx(whole, abs=1e-12)
    assert calls == [20, 20]
    # Of a complete graph all other eigenvalues are alike.
    assert connectivity(kind(np.ones((30, 30))), np.zeros(30)) == pytest.approx(30 / 29)

    def fail(*args, **options):
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(clustering, "eigsh", fail)
    assert connectivity(kind(A), labels, average=True) == pytest.approx(whole, abs=1e-12)


# mass in the blocks


@by_kind
@pytest.mark.parametrize("diagonal", [True, False])
def test_block_mass_naive_twin(kind, diagonal):
    C, labels = example()
    C += np.diag(numbers(9, seed=1))
    assert block_mass(kind(C), labels, diagonal=diagonal) == pytest.approx(naive_mass(C, labels, diagonal))
    assert block_mass(kind(C), labels) == block_mass(kind(C), labels, diagonal=True)
    assert type(block_mass(kind(C), labels)) is float


def test_block_mass_at_its_ends():
    assert block_mass(np.eye(4), [0, 1, 2, 3]) == 1.0
    assert block_mass(np.ones((4, 4)), [0, 0, 1, 1]) == 0.5
    assert block_mass(np.ones((4, 4)), [0, 0, 1, 1], diagonal=False) == pytest.approx(4 / 12)
    assert block_mass(np.ones((4, 4)), [0] * 4, diagonal=False) == 1.0


# all of them

MEASURES = {"coefficients": subspace_preserving_error, "affinity": connectivity, "matrix": block_mass}


@pytest.mark.parametrize("name", MEASURES)
def test_entries_given_twice_are_added(name):
    """COO and CSR may hold an entry in parts, of opposite signs too."""
    rows, columns = [0, 1, 0, 1, 0, 1, 2, 0, 2, 1], [1, 0, 1, 0, 1, 0, 0, 2, 1, 2]
    data = [3.0, 3.0, -1.0, -1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    coo = sparse.coo_array((data, (rows, columns)), shape=(3, 3))
    order = np.argsort(rows, kind="stable")
    csr = sparse.csr_array((np.take(data, order), np.take(columns, order), [0, 4, 8, 10]), shape=(3, 3))
    expected = MEASURES[name](coo.toarray(), [0, 0, 1])
    assert MEASURES[name](coo, [0, 0, 1]) == expected
    assert MEASURES[name](csr, [0, 0, 1]) == expected
    assert csr.nnz == 10  # and nothing is written into it


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_arguments_are_left_alone(name, kind):
    A = kind(graph())
    before = A.copy()
    for options in ({}, {"diagonal": False}) if name == "matrix" else ({},):
        MEASURES[name](A, np.arange(12) % 2, **options)
    assert abs(A - before).max() == 0


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_wrong_is_named(name):
    measure = MEASURES[name]
    for bad, message in (
        (np.ones(3), r"\(3,\) .*\(n, n\)"),
        (np.ones((3, 2)), r"\(3, 2\) "),
        (np.ones((0, 0)), r"\(0, 0\) .*at least 1"),
        (sparse.csr_array(np.ones((3, 2))), r"\(3, 2\) "),
        (np.full((3, 3), np.nan), "nan .*finite throughout"),
        (sparse.csr_array(np.full((3, 3), np.inf)), "inf .*finite throughout"),
        ("abc", "'abc' .*numbers"),
    ):
        with pytest.raises(InvalidParameterError, match=f"^{name}={message}"):
            measure(bad, [0, 1, 1])
    for labels, message in (
        ([0, 1], r"\(2,\) .*shape \(3,\)"),
        ([[0], [1], [1]], r"\(3, 1\) "),
        ([], r"\(0,\) .*at least 1"),
        ([0.0, np.nan, 1.0], "nan .*without missing"),
        (["a", None, "b"], "None .*without missing"),
    ):
        with pytest.raises(InvalidParameterError, match=f"^labels={message}"):
            measure(np.ones((3, 3)), labels)


def test_what_else_is_wrong_is_named():
    with pytest.raises(InvalidParameterError, match=r"labels_pred=\(1,\) .*shape \(2,\)"):
        clustering_accuracy([0, 1], [0])
    with pytest.raises(InvalidParameterError, match=r"labels_true=\(0,\) "):
        clustering_accuracy([], [])
    with pytest.raises(InvalidParameterError, match="labels_pred=nan "):
        clustering_accuracy([0, 1], [0, np.nan])
    for kind in (np.asarray, sparse.csr_array):
        with pytest.raises(InvalidParameterError, match="affinity=-1.0 .*at least 0"):
            connectivity(kind(-np.eye(2)), [0, 0])
        with pytest.raises(InvalidParameterError, match="affinity=.*transpose by 2.* symmetric"):
            connectivity(kind(np.array([[0, 2.0], [0, 0]])), [0, 0])
        with pytest.raises(InvalidParameterError, match="matrix=0.0 .*zero somewhere.$"):
            block_mass(kind(np.zeros((2, 2))), [0, 0])
        with pytest.raises(InvalidParameterError, match="matrix=0.0 .*off its diagonal"):
            block_mass(kind(np.eye(2)), [0, 0], diagonal=False)


def test_differences_by_rounding_are_no_asymmetry():
    A = graph()
    A[0, 1] += 1e-7
    assert connectivity(A, [0] * 12) == pytest.approx(connectivity(graph(), [0] * 12), rel=1e-5)


# rank by energy


@pytest.mark.parametrize("energy", [0.01, 0.5, 0.9, 0.95, 0.999999])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (1, 5)])
def test_rank_by_energy_naive_twin(shape, energy):
    A = numbers(*shape) * 0.3 ** np.arange(shape[1])
    squares = sorted(np.linalg.eigvalsh(A @ A.T), reverse=True)
    rank = next(r for r in range(1, len(squares) + 1) if sum(squares[:r]) / sum(squares) > energy)
    assert numerical_rank(A, energy=energy) == rank
    for scale in (1e-200, 1e200):
        assert numerical_rank(scale * A, energy=energy) == rank
    assert type(numerical_rank(A, energy=energy)) is int


def test_rank_by_energy_at_its_ends():
    assert numerical_rank(np.zeros((3, 2)), energy=0.95) == 0
    assert numerical_rank(np.diag([3.0, 4.0]), energy=0.6) == 1
    assert numerical_rank(np.eye(4), energy=0.5) == 3  # more than the half, as the paper has it
    assert numerical_rank(np.diag([1.0, 1e-3])) == 2
    assert numerical_rank(torch.eye(3), energy=0.95) == 3
    for energy in (0, 1, 1.5, "most", True):
        with pytest.raises(InvalidParameterError, match="energy=.* above 0"):
            numerical_rank(np.eye(2), energy=energy)


def test_every_name_is_public():
    assert sorted(mercer.metrics.__all__) == mercer.metrics.__all__
    assert all(hasattr(mercer.metrics, name) for name in mercer.metrics.__all__)
