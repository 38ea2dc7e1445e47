"""The steps of one clustering by self-expression: coefficients, graph, spectrum and labels."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from torch import Tensor

from mercer.blocks import walk
from mercer.clustering.affinity import Matrix, indicator, modularity, truncated, without_small
from mercer.clustering.expression import SelfExpression
from mercer.clustering.expression.base import without_own
from mercer.clustering.spectral import ASSIGNMENTS, Spectrum, assign, joined_spectrum, laplacian_spectrum
from mercer.clustering.subspace.affinities import Affinity
from mercer.clustering.subspace.landmark_graph import landmark_modularity, landmark_spectrum, landmark_weights
from mercer.exceptions import DataWarning, NumericalError, warn_user
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers

# How labels may be assigned: by one rule, or by the best of several ("auto").
ASSIGN_LABELS = ("auto", *ASSIGNMENTS)


def expressed(expression: SelfExpression, K: Tensor, truncate: int | None) -> Matrix:
    """Return the coefficients that express points by each other, of shape (n, n), with zeros on the diagonal.

    Least squares and low rank allow a point to be expressed by itself. That coefficient says nothing about its
    neighbors, and is set to zero.

    Parameters
    ----------
    expression : SelfExpression
    K : tensor of shape (n, n)
        The kernel matrix of the points.
    truncate : int or None
        The number of coefficients that are kept for each point.
    """
    return _kept(expression.within(K).fill_diagonal_(0.0), expression, truncate)


def expressed_in(
    expression: SelfExpression,
    kernel: Kernel,
    dictionary: Tensor,
    rows: Tensor,
    own: Tensor | None,
    truncate: int | None,
    working_memory: float,
) -> Matrix:
    """Return the coefficients that express rows by a dictionary, computed in blocks of rows, of shape (m, n).

    Parameters
    ----------
    expression : SelfExpression
    kernel : Kernel
    dictionary : tensor of shape (m, d)
    rows : tensor of shape (n, d)
    own : tensor of shape (n,), optional
        As in `SelfExpression.solver`.
    truncate : int or None
        The number of coefficients that are kept for each row.
    working_memory : float
        MiB for one block of rows.
    """
    solve = expression.solver(kernel.matrix(dictionary))
    bytes_per_row = 2 * block_numbers(*dictionary.shape) * dictionary.element_size()
    parts = []
    for place, (x,) in walk([rows], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=rows.dtype):
        places = None if own is None else own[place]
        k = kernel.matrix(dictionary, x, working_memory=working_memory)
        C = without_own(solve(k, kernel.diagonal(x), places), places)
        parts.append(_kept(C, expression, truncate))
    return sparse.csc_array(sparse.hstack(parts)) if sparse.issparse(parts[0]) else np.hstack(parts)


def _kept(C: Tensor, expression: SelfExpression, truncate: int | None) -> Matrix:
    """Return the largest coefficients of each column, or all of them if `truncate` is None."""
    return without_small(C) if truncate is None and expression.is_sparse else truncated(C, truncate)


def columns_of_copies(C: Matrix, which: np.ndarray) -> Matrix:
    """Return the coefficients of all points; `which` has the number of the distinct point that each of them equals."""
    return C if len(which) == C.shape[1] else C[:, which]


def among_copies(W: Matrix, which: np.ndarray) -> Matrix:
    """Return the affinities among all points, which are those of the distinct points that they equal."""
    return W if len(which) == W.shape[0] else W[which][:, which]


@dataclass(frozen=True)
class Graph:
    """A graph of points: `weights` is W, between all points, or Z, from each point to the landmarks."""

    coefficients: Matrix
    weights: Any
    through_landmarks: bool

    def spectrum(self, n_values: int, random: np.random.RandomState) -> Spectrum:
        if self.through_landmarks:
            return landmark_spectrum(self.weights, n_values)
        return laplacian_spectrum(self.weights, n_values, random)

    def modularity(self, labels: np.ndarray) -> float:
        return (landmark_modularity if self.through_landmarks else modularity)(self.weights, labels)


def joined_by(C: Matrix, affinity: Affinity) -> Graph:
    """Return the graph of points that are expressed by each other."""
    return Graph(C, affinity.weights(C), through_landmarks=False)


def joined_through_landmarks(C: Matrix) -> Graph:
    """Return the graph of points that are expressed by landmarks; it is doubly stochastic without further scaling."""
    return Graph(C, landmark_weights(C), through_landmarks=True)


def proposed_labels(
    graph: Graph,
    spectrum: Spectrum,
    n_clusters: int,
    method: str,
    random: np.random.RandomState,
    voted: np.ndarray | None = None,
) -> np.ndarray:
    """Return the clusters of a graph by one rule; "auto" takes the clusters with the largest modularity of up to three.

    The first are those of k-means on unit rows of the eigenvectors. If an eigenvector is concentrated on a tiny group
    of points, k-means on a graph with additional weak links between all points is compared too. With landmarks, the
    clusters `voted` are compared too: those of the landmarks, extended to all points by a vote. Modularity prefers
    clusters of equal size, so the graph with weak links is compared only if there is a tiny group.

    Parameters
    ----------
    graph : Graph
    spectrum : Spectrum
        The spectrum of the graph, with at least `n_clusters` eigenvectors.
    n_clusters : int
    method : {"auto", "kmeans", "plain_kmeans", "cluster_qr"}
        See `mercer.clustering.spectral.assign`.
    random : RandomState
    voted : ndarray of shape (n,), optional
        Clusters to compare with.
    """
    if method != "auto":
        return assign(spectrum, n_clusters, method=method, random=random)
    # Both runs start from the same random state, so the second one does not change the numbers of the first.
    again = copy.deepcopy(random)
    found = [assign(spectrum, n_clusters, random=random)]
    if not graph.through_landmarks and sits_on_specks(spectrum.vectors[:, :n_clusters]):
        joined = joined_spectrum(graph.weights, n_clusters, again)
        found.append(assign(joined, n_clusters, random=again))
    return max(found if voted is None else [*found, voted], key=graph.modularity)


def sits_on_specks(vectors: np.ndarray) -> bool:
    """Return whether an eigenvector is concentrated on too few points to be a cluster.

    A unit vector v is concentrated on about 1 / sum v_i^4 points. A cluster has n / k points on average, and fewer than
    a tenth of that number are too few.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        The eigenvectors of k clusters.
    """
    n, k = vectors.shape
    norms = np.linalg.norm(vectors, axis=0)
    unit = vectors[:, norms > 0] / norms[norms > 0]  # in a graph without links, eigenvectors are zero
    return bool(((unit**4).sum(axis=0) > 10.0 * k / n).any())


def voted_labels(C: Matrix, labels: np.ndarray, everyone: np.ndarray) -> np.ndarray:
    """Return for each point the cluster with the largest sum of absolute coefficients.

    Points whose coefficients are all zero are assigned to the largest cluster.

    Parameters
    ----------
    C : ndarray or sparse matrix of shape (m, n)
        Column i has the coefficients that express point i by the dictionary.
    labels : ndarray of shape (m,)
        The clusters of the dictionary's points.
    everyone : ndarray
        The clusters of all points that have one; they determine the largest cluster.
    """
    masses = np.asarray(abs(C).T @ indicator(labels))
    if not np.isfinite(masses).all():
        raise NumericalError("SubspaceClustering.predict: numbers of X, or of the model, are too large.")
    return np.where(masses.any(axis=1), masses.argmax(axis=1), np.bincount(everyone).argmax())


@dataclass(frozen=True)
class Clustering:
    """The clusters of one graph, and their modularity."""

    graph: Graph
    spectrum: Spectrum
    labels: np.ndarray
    n_clusters: int
    modularity: float

    def warn(self) -> None:
        """Warn if the graph has more connected components than clusters, or if some clusters are empty."""
        if self.spectrum.n_parts > self.n_clusters:
            warn_user(
                f"the affinity has {self.spectrum.n_parts} connected components, and n_clusters={self.n_clusters}: "
                "some clusters join points with no affinity. More clusters, or a larger truncate, avoid this.",
                DataWarning,
            )
        n_found = len(np.unique(self.labels))
        if n_found < self.n_clusters:
            warn_user(
                f"n_clusters={self.n_clusters}, but {n_found} clusters have points: the others have no place of their "
                "own in the spectral embedding. Fewer clusters avoid this.",
                DataWarning,
            )
