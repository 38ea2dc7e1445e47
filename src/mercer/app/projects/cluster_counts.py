"""Choose the number of clusters: the one on which two halves of the rows agree and that separates rows best."""

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
# Neighbors and ridge of the graphs, as in the final clustering, and the number of starts of k-means.
NEIGHBORS, RIDGE, N_INIT = 10, 0.3, 3
# How often the rows are split in halves, and how many neighbors vote to carry the clusters of one half to the other.
N_SPLITS, VOTERS = 3, 5
# Fewer rows than this are not split.
FEWEST_ROWS = 8


def count_clusters(X: np.ndarray, kernel: Kernel, seed: int) -> list[dict[str, Any]]:
    """Try several numbers of clusters, and return how stable each is, how well it separates rows, and which is chosen.

    The stability of a number is the agreement of two clusterings, each found in one half of the rows and carried over
    to the other. Real clusters are found in both halves, whereas a cut through a cluster falls in different places.
    The silhouette says how much nearer rows are to their own cluster than to the next. Neither suffices alone:
    stability is high for a few large groups, and for a long cluster that is cut across, and the silhouette hardly
    changes where groups overlap. The number with the largest product of both is chosen.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    kernel : Kernel
        Its bandwidth is a number, not a rule.
    seed : int

    Returns
    -------
    list of dict
        For each number `n_clusters`, `stability` (the mean adjusted Rand index; None below 8 rows), `silhouette` and
        `chosen`.

    Notes
    -----
    O(n^3 + n^2 d) for a graph of all rows and six graphs of half of them. In addition, each number takes k-means and
    the distances of all rows.
    """
    n = len(X)
    is_split = n >= FEWEST_ROWS
    most = min(MOST_CLUSTERS, n // 2 - 1 if is_split else n - 1)
    numbers = range(2, max(2, most) + 1)
    agreement: Sequence[float | None]
    agreement = stabilities(X, kernel, numbers, seed) if is_split else [None] * len(numbers)
    fits = [separation(X, labels) for labels in _clusterings(_graph(X, kernel), numbers, seed)]
    # Without stability, the silhouette alone decides. An agreement below that of chance counts as 0.
    products = [fit if one is None else max(one, 0.0) * fit for one, fit in zip(agreement, fits, strict=True)]
    taken = int(np.argmax(products))
    return [
        {"n_clusters": k, "stability": agreement[i], "silhouette": fits[i], "chosen": i == taken}
        for i, k in enumerate(numbers)
    ]


def stabilities(X: np.ndarray, kernel: Kernel, numbers: Sequence[int], seed: int) -> list[float]:
    """Return for each number of clusters how well the clusterings of two halves agree, averaged over both halves.

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
    """Return the mean silhouette of the rows, at least 0; 0 if there is one cluster only or one for each row.

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
