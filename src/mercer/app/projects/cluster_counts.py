"""How many clusters do rows fall into? The number that two halves of the rows agree on and that sets rows apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from mercer.blocks import as_tensor
from mercer.clustering.affinity import indicator
from mercer.clustering.expression import RidgeExpression
from mercer.clustering.spectral import assign
from mercer.clustering.subspace.affinities import ScaledAffinity
from mercer.clustering.subspace.graphs import Graph, expressed, joined_by
from mercer.kernels import Kernel

MOST_CLUSTERS = 20
# Of graphs, as clusters are made of in the end, and of k-means.
NEIGHBORS, RIDGE, N_INIT = 10, 0.3, 3
# Times that rows are split in halves, and neighbors by which rows of one half take on the clusters of the other.
N_SPLITS, VOTERS = 3, 5
# Fewer rows are not split.
FEWEST_ROWS = 8


def count_clusters(X: np.ndarray, kernel: Kernel, seed: int) -> list[dict[str, Any]]:
    """Return the numbers of clusters that were tried: how stable each is, how far it sets rows apart, if it is taken.

    The stability of a number is the agreement of two clusterings, each found in one half of the rows and carried over
    to the other: clusters that are there are found twice, a cut through a cluster falls here or there. The silhouette
    says how much nearer rows are to their own cluster than to the next. Alone, stability is content with a few large
    groups, and is fooled by a long one that is cut across, and the silhouette hardly changes where groups overlap. The
    number with the largest product of both is taken.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    kernel : Kernel
        With a number for the bandwidth.
    seed : int

    Returns
    -------
    list of dict
        n_clusters, stability (the mean adjusted Rand index; None for a handful of rows), silhouette, chosen.

    Notes
    -----
    O(n^3 + n^2 d) for a graph of all rows and six of a half; k-means and distances of all rows for each number.
    """
    n = len(X)
    is_split = n >= FEWEST_ROWS
    most = min(MOST_CLUSTERS, n // 2 - 1 if is_split else n - 1)
    numbers = range(2, max(2, most) + 1)
    agreement: Sequence[float | None]
    agreement = stabilities(X, kernel, numbers, seed) if is_split else [None] * len(numbers)
    fits = [separation(X, labels) for labels in _clusterings(_graph(X, kernel), numbers, seed)]
    # Of a handful of rows the silhouette alone decides. Less agreement than by chance is none.
    products = [fit if one is None else max(one, 0.0) * fit for one, fit in zip(agreement, fits, strict=True)]
    taken = int(np.argmax(products))
    return [
        {"n_clusters": k, "stability": agreement[i], "silhouette": fits[i], "chosen": i == taken}
        for i, k in enumerate(numbers)
    ]


def stabilities(X: np.ndarray, kernel: Kernel, numbers: Sequence[int], seed: int) -> list[float]:
    """Return for each number of clusters how well clusterings of two halves agree, on the rows of either.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    kernel : Kernel
    numbers : sequence of int
    seed : int
    """
    random = check_random_state(seed)
    scores = np.zeros(len(numbers))
    for _ in range(N_SPLITS):
        halves = np.array_split(random.permutation(len(X)), 2)
        found = [_clusterings(_graph(X[half], kernel), numbers, seed) for half in halves]
        for own, other in ((0, 1), (1, 0)):
            neighbors = NearestNeighbors(n_neighbors=min(VOTERS, len(halves[other])), algorithm="brute")
            nearest = neighbors.fit(X[halves[other]]).kneighbors(X[halves[own]], return_distance=False)
            for i, labels in enumerate(found[other]):
                carried = indicator(labels)[nearest].sum(axis=1).argmax(axis=1)
                scores[i] += adjusted_rand_score(found[own][i], carried) / (2 * N_SPLITS)
    return scores.tolist()


def separation(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean silhouette of rows, at least 0; 0 where there is nothing to compare.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
    """
    is_defined = 1 < len(np.unique(labels)) < len(X)
    return max(float(silhouette_score(X, labels)), 0.0) if is_defined else 0.0


def _graph(X: np.ndarray, kernel: Kernel) -> Graph:
    expression = RidgeExpression(ridge=RIDGE, relative=True)
    return joined_by(expressed(expression, kernel.matrix(as_tensor(X)), NEIGHBORS), ScaledAffinity())


def _clusterings(graph: Graph, numbers: Sequence[int], seed: int) -> list[np.ndarray]:
    spectrum = graph.spectrum(max(numbers), check_random_state(seed))
    return [assign(spectrum, k, n_init=N_INIT, random=check_random_state(seed)) for k in numbers]
