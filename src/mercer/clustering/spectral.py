"""Spectral clustering of a graph: eigenvectors of the normalized affinity, the eigengap, and the assignment."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mercer.checks import check_choice
from mercer.clustering.affinity import Matrix
from mercer.clustering.k_means import k_means
from mercer.linalg import lanczos_eigenpairs, top_eigenpairs

# Components of at most this many points are decomposed densely; larger ones with a sparse affinity by Lanczos steps.
FEW_POINTS = 500
ASSIGNMENTS = ("kmeans", "plain_kmeans", "cluster_qr")


class Spectrum(NamedTuple):
    """The smallest eigenvalues of the normalized Laplacian I - D^-1/2 W D^-1/2, ascending, and their eigenvectors.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
    vectors : ndarray of shape (n, r)
    n_parts : int
        The number of connected components with more than one point.
    degrees : ndarray of shape (n,) or None
        The row sums of the affinity; None if all are 1.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    n_parts: int
    degrees: np.ndarray | None = None


def laplacian_spectrum(W: Matrix, n_values: int, random: np.random.RandomState) -> Spectrum:
    """Return the smallest eigenpairs of the normalized Laplacian of an affinity.

    Each connected component is decomposed by itself, since each adds an eigenvalue of zero, and Lanczos steps from one
    vector would find only one of several equal eigenvalues. Points without affinity are skipped, and their entries in
    the eigenvectors are zero.

    Parameters
    ----------
    W : ndarray or sparse matrix of shape (n, n)
        Symmetric affinities without negative entries.
    n_values : int
        The number of eigenpairs; fewer are returned if there are fewer points.
    random : RandomState
        Draws the first vectors of the Lanczos steps.

    Notes
    -----
    The cost is at most O(n^3) for a dense affinity, and some tens of matrix products for a sparse one.
    """
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1)).ravel()
    root = np.divide(1.0, np.sqrt(degrees), out=np.zeros(n), where=degrees > 0)
    S = W * root[:, None] * root if isinstance(W, np.ndarray) else sparse.csr_array(W.multiply(root[:, None] * root))
    n_parts, part_of = connected_components(
        sparse.csr_array(S != 0) if isinstance(S, np.ndarray) else S, directed=False
    )
    values, vectors, n_large = [], [], 0
    for part in range(n_parts):
        (points,) = np.nonzero(part_of == part)
        if degrees[points[0]] == 0:
            continue
        n_large += len(points) > 1
        own = S if len(points) == n else S[points][:, points]
        pairs = _leading(own, min(n_values, len(points)), random)
        values.append(1.0 - pairs[0])
        vectors.append((points, pairs[1]))
    if not values:
        return Spectrum(np.ones(min(n, n_values)), np.zeros((n, min(n, n_values))), 0, degrees)
    return _merged(n, values, vectors, n_values, n_large)._replace(degrees=degrees)


def joined_spectrum(W: Matrix, n_values: int, random: np.random.RandomState) -> Spectrum:
    """Return the smallest eigenpairs of the normalized Laplacian of W + t / n, a graph with weak links between all.

    If points have few neighbors, some pairs and triples have almost no affinity to the rest of the graph. The
    normalized cut prefers such tiny groups to real clusters. Their number grows with the number of points, until none
    of the leading eigenvectors is left for the real clusters. Here t is the mean degree. Spread over all points, it
    adds an affinity of about t s between a group of s points and the rest. For a tiny group that is much. For real
    clusters, of about n / k points, it changes all of them by the same factor (Amini et al. 2013; Zhang and Rohe 2018,
    who call it CoreCut).

    Parameters
    ----------
    W, n_values, random
        As in `laplacian_spectrum`.
    """
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1)).ravel()
    t = float(degrees.mean())
    if not sparse.issparse(W) or t == 0.0:
        return laplacian_spectrum(W if t == 0.0 else W + t / n, n_values, random)
    root = 1.0 / np.sqrt(degrees + t)
    S = sparse.csr_array(W.multiply(root[:, None] * root))
    values, vectors = _leading(S, min(n_values, n), random, root * np.sqrt(t / n))
    return Spectrum(np.clip(1.0 - values, 0.0, 2.0), vectors, 1, degrees + t)


def _leading(
    S: Matrix, count: int, random: np.random.RandomState, u: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenpairs of S, or of S + u u^T."""
    n = S.shape[0]
    if sparse.issparse(S) and n > max(FEW_POINTS, 4 * count):

        def multiply(V: torch.Tensor) -> torch.Tensor:
            product = S @ V.numpy()
            return torch.from_numpy(product if u is None else product + np.multiply.outer(u, u @ V.numpy()))

        pairs = lanczos_eigenpairs(multiply, torch.from_numpy(random.uniform(-1.0, 1.0, n)), count)
    else:
        dense = S.toarray() if sparse.issparse(S) else S
        dense = dense if u is None else dense + np.outer(u, u)
        pairs = top_eigenpairs(torch.from_numpy(np.ascontiguousarray(dense)), count)
    return pairs.values.numpy(), pairs.vectors.numpy()


def _merged(
    n: int, values: list[np.ndarray], vectors: list[tuple[np.ndarray, np.ndarray]], n_values: int, n_parts: int
) -> Spectrum:
    """Return the smallest eigenvalues of all components; eigenvectors are zero outside their own component."""
    everything = np.concatenate(values)
    owners = np.repeat(np.arange(len(values)), [len(part) for part in values])
    columns = np.concatenate([np.arange(len(part)) for part in values])
    kept = np.argsort(everything, kind="stable")[:n_values]
    out = np.zeros((n, len(kept)))
    for place, i in enumerate(kept):
        points, own = vectors[owners[i]]
        out[points, place] = own[:, columns[i]]
    return Spectrum(np.clip(everything[kept], 0.0, 2.0), out, n_parts)


def eigengap(eigenvalues: np.ndarray) -> int:
    """Return the number of clusters, at least two, after which the eigenvalues of the Laplacian have the largest gap.

    Parameters
    ----------
    eigenvalues : ndarray of shape (r,)
        The smallest eigenvalues, ascending.
    """
    if len(eigenvalues) < 3:
        return len(eigenvalues)
    return int(np.argmax(np.diff(eigenvalues)[1:])) + 2


def assign(
    spectrum: Spectrum,
    n_clusters: int,
    *,
    method: str = "kmeans",
    n_init: int = 10,
    random: np.random.RandomState | None = None,
) -> np.ndarray:
    """Return the cluster of each point, from the leading eigenvectors of its graph.

    Parameters
    ----------
    spectrum : Spectrum
    n_clusters : int
    method : {"kmeans", "plain_kmeans", "cluster_qr"}, default="kmeans"
        "kmeans" is k-means after each point's row of the eigenvectors is scaled to length 1 (Ng, Jordan and Weiss
        2001). "plain_kmeans" divides the row by the square root of the point's degree instead, as scikit-learn's
        SpectralClustering does, which gives the eigenvectors of the random walk (Shi and Malik 2000). "cluster_qr"
        makes no random choices: a pivoted QR decomposition selects one point for each cluster (Damle, Minden and Ying
        2019).
    n_init : int, default=10
        The number of runs of k-means, of which the best is kept. Some clusters may remain empty.
    random : RandomState, optional
        Draws the initial centers of k-means.
    """
    check_choice("method", method, ASSIGNMENTS)
    # Each component has an eigenvalue of zero. If there are more components than clusters, all of them are used.
    E = spectrum.vectors[:, : max(n_clusters, min(spectrum.n_parts, spectrum.vectors.shape[1]))]
    if method == "plain_kmeans":
        norms = np.ones(len(E)) if spectrum.degrees is None else np.sqrt(spectrum.degrees)
    else:
        norms = np.linalg.norm(E, axis=1)
    E = np.divide(E, norms[:, None], out=np.zeros_like(E), where=norms[:, None] > 0)
    if method == "cluster_qr" and E.shape[1] == n_clusters:
        return cluster_qr(E)
    return k_means(E, n_clusters, n_init=n_init, random_state=random)


def cluster_qr(E: np.ndarray) -> np.ndarray:
    """Return clusters by a pivoted QR decomposition of the eigenvectors.

    The pivots are k rows that point in different directions. Their polar factor makes these directions orthogonal, and
    each row is assigned to the direction with which it has the largest absolute inner product.

    Parameters
    ----------
    E : ndarray of shape (n, k)
        The leading eigenvectors, with rows of length 1.
    """
    k = E.shape[1]
    _, _, pivots = scipy.linalg.qr(E.T, pivoting=True)
    U, _, Vt = np.linalg.svd(E[pivots[:k]].T)
    return np.abs(E @ (U @ Vt)).argmax(axis=1)
