"""One clustering of points that are expressed in a dictionary: coefficients, graph, spectrum, labels."""

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

# How labels may be assigned: by one of the spectral steps, or by several that compete.
ASSIGN_LABELS = ("auto", *ASSIGNMENTS)


def expressed(expression: SelfExpression, K: Tensor, truncate: int | None) -> Matrix:
    """Return the coefficients of points in each other, of shape (n, n), those of a point in itself set to zero.

    Least squares and low rank allow a point in its own expression, where it says nothing of its neighbors.

    Parameters
    ----------
    expression : SelfExpression
    K : tensor of shape (n, n)
        The kernel matrix of the points.
    truncate : int or None
        How many coefficients of a point are kept.
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
    """Return the coefficients of rows in a dictionary, by blocks of rows; `own` as in `SelfExpression.solver`."""
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
    return without_small(C) if truncate is None and expression.is_sparse else truncated(C, truncate)


def columns_of_copies(C: Matrix, which: np.ndarray) -> Matrix:
    """Return the coefficients of points that may be copies, given which of the distinct ones each of them is."""
    return C if len(which) == C.shape[1] else C[:, which]


def among_copies(W: Matrix, which: np.ndarray) -> Matrix:
    """Return the affinity of points that may be copies: that of the distinct ones."""
    return W if len(which) == W.shape[0] else W[which][:, which]


@dataclass(frozen=True)
class Graph:
    """Points and what joins them: W among all of them, or Z through landmarks."""

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
    """Return the graph of points that express each other."""
    return Graph(C, affinity.weights(C), through_landmarks=False)


def joined_through_landmarks(C: Matrix) -> Graph:
    """Return the graph of points that are expressed in landmarks; it is doubly stochastic by itself."""
    return Graph(C, landmark_weights(C), through_landmarks=True)


def proposed_labels(
    graph: Graph,
    spectrum: Spectrum,
    n_clusters: int,
    method: str,
    random: np.random.RandomState,
    voted: np.ndarray | None = None,
) -> np.ndarray:
    """Return clusters of a graph by a spectral step; with "auto" the best, by modularity, of those that there are.

    These are k-means on the eigenvectors' unit rows; the same with all points joined a little, where eigenvectors sit
    on specks that hang by a thread; and, through landmarks, the clusters of the landmarks with a vote for all others.
    Modularity prefers clusters of equal size, so that nothing competes where there are no specks.

    Parameters
    ----------
    graph : Graph
    spectrum : Spectrum
        Of the graph, with `n_clusters` eigenvectors at least.
    n_clusters : int
    method : {"auto", "kmeans", "plain_kmeans", "cluster_qr"}
        See `mercer.clustering.spectral.assign`.
    random : RandomState
    voted : ndarray of shape (n,), optional
        Clusters that compete.
    """
    if method != "auto":
        return assign(spectrum, n_clusters, method=method, random=random)
    # Both begin with the same random numbers: that there are two changes nothing for the first.
    again = copy.deepcopy(random)
    found = [assign(spectrum, n_clusters, random=random)]
    if not graph.through_landmarks and sits_on_specks(spectrum.vectors[:, :n_clusters]):
        joined = joined_spectrum(graph.weights, n_clusters, again)
        found.append(assign(joined, n_clusters, random=again))
    return max(found if voted is None else [*found, voted], key=graph.modularity)


def sits_on_specks(vectors: np.ndarray) -> bool:
    """Return whether an eigenvector sits on so few points that they are no cluster.

    A unit vector v sits on about 1 / sum v_i^4 points. A cluster has n / k of them on average; a tenth is a speck.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        The eigenvectors of k clusters.
    """
    n, k = vectors.shape
    norms = np.linalg.norm(vectors, axis=0)
    unit = vectors[:, norms > 0] / norms[norms > 0]  # where nothing joins points there is no eigenvector
    return bool(((unit**4).sum(axis=0) > 10.0 * k / n).any())


def voted_labels(C: Matrix, labels: np.ndarray, everyone: np.ndarray) -> np.ndarray:
    """Return the cluster that most of each point's expression lies in; points that nothing expresses go to the largest.

    Parameters
    ----------
    C : ndarray or sparse matrix of shape (m, n)
    labels : ndarray of shape (m,)
        The clusters of the dictionary.
    everyone : ndarray
        The clusters of all points that have one, for the largest.
    """
    masses = np.asarray(abs(C).T @ indicator(labels))
    if not np.isfinite(masses).all():
        raise NumericalError("SubspaceClustering.predict: numbers of X, or of the model, are too large.")
    return np.where(masses.any(axis=1), masses.argmax(axis=1), np.bincount(everyone).argmax())


@dataclass(frozen=True)
class Clustering:
    """Clusters of one graph, and how well they fit it."""

    graph: Graph
    spectrum: Spectrum
    labels: np.ndarray
    n_clusters: int
    modularity: float

    def warn(self) -> None:
        """Say so if the graph does not bear as many clusters, or bears more."""
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
