"""The spectral step: eigenvectors of the normalized affinity, the eigengap, and the assignment to clusters."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as DistinctPointsWarning

from mercer.checks import check_choice
from mercer.clustering.affinity import Matrix
from mercer.exceptions import ignored
from mercer.linalg import lanczos_eigenpairs, one_thread, top_eigenpairs

# Up to this many points of a component all is decomposed densely; past it, and if the affinity is sparse, by Lanczos.
FEW_POINTS = 500
ASSIGNMENTS = ("kmeans", "plain_kmeans", "cluster_qr")


class Spectrum(NamedTuple):
    """The smallest eigenvalues of the normalized Laplacian I - D^-1/2 W D^-1/2, ascending, and their eigenvectors.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
    vectors : ndarray of shape (n, r)
    n_parts : int
        Connected components with more than one point.
    degrees : ndarray of shape (n,) or None
        The sums of the affinity's rows; None where all are 1.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    n_parts: int
    degrees: np.ndarray | None = None


def laplacian_spectrum(W: Matrix, n_values: int, random: np.random.RandomState) -> Spectrum:
    """Return the smallest eigenpairs of the normalized Laplacian of an affinity.

    Component by component: each connected component adds an eigenvalue of zero, and Lanczos steps from one vector
    would find one of equal eigenvalues only. A point without affinity is in no component; its entries are zero.

    Parameters
    ----------
    W : ndarray or sparse matrix of shape (n, n)
        Symmetric, nowhere negative.
    n_values : int
        How many; fewer come back if there are fewer points.
    random : RandomState
        Draws the first vectors of the Lanczos steps.

    Notes
    -----
    O(n^3) at most for a dense affinity; some tens of products with a sparse one.
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
    """Return the smallest eigenpairs of the normalized Laplacian of W + t / n: all points are joined a little.

    In a graph of few neighbors a point, some pairs and triples hang by a thread: little affinity leads out of them,
    and few points make much of it. The normalized cut takes them for the best clusters there are, and the more points,
    the more of them: then none of the leading eigenvectors is left for the true clusters. With t, the mean degree,
    spread over all points a speck of s points has t s more leading out of it, which for a cluster of n / k points is
    no more than the factor that all clusters have (Amini et al. 2013; Zhang and Rohe 2018, who call it CoreCut).

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
    """Return the smallest eigenvalues of all components, their eigenvectors with zeros outside of their component."""
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
    """Return the number of clusters, two at least, after which the next eigenvalue of the Laplacian is farthest."""
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
    """Return the cluster of each point, from the leading eigenvectors.

    Parameters
    ----------
    spectrum : Spectrum
    n_clusters : int
    method : {"kmeans", "plain_kmeans", "cluster_qr"}, default="kmeans"
        "kmeans" scales rows of the eigenvectors to length 1 (Ng, Jordan and Weiss 2001). "plain_kmeans" divides them by
        the root of the point's degree and leaves lengths alone, as scikit-learn's SpectralClustering does: eigenvectors
        of the random walk (Shi and Malik 2000). "cluster_qr" takes the points that a pivoted QR of the eigenvectors
        picks as the clusters' corners, without any random choice (Damle, Minden and Ying 2019).
    n_init : int, default=10
        Runs of k-means, of which the best is kept. Clusters without points are left without.
    random : RandomState, optional
    """
    check_choice("method", method, ASSIGNMENTS)
    # With more components than clusters all of them have the eigenvalue zero: none is left out.
    E = spectrum.vectors[:, : max(n_clusters, min(spectrum.n_parts, spectrum.vectors.shape[1]))]
    if method == "plain_kmeans":
        norms = np.ones(len(E)) if spectrum.degrees is None else np.sqrt(spectrum.degrees)
    else:
        norms = np.linalg.norm(E, axis=1)
    E = np.divide(E, norms[:, None], out=np.zeros_like(E), where=norms[:, None] > 0)
    if method == "cluster_qr" and E.shape[1] == n_clusters:
        return cluster_qr(E)
    # scikit-learn limits the BLAS and puts back what it found, which threads that overlap confuse: here all find one.
    with ignored(DistinctPointsWarning), one_thread():
        return KMeans(n_clusters, n_init=n_init, random_state=random).fit(E).labels_


def cluster_qr(E: np.ndarray) -> np.ndarray:
    """Return clusters by a pivoted QR decomposition.

    The pivots are k rows that point in different directions. They are made orthogonal by their polar factor, and each
    row goes to the direction that it is most along.
    """
    k = E.shape[1]
    _, _, pivots = scipy.linalg.qr(E.T, pivoting=True)
    U, _, Vt = np.linalg.svd(E[pivots[:k]].T)
    return np.abs(E @ (U @ Vt)).argmax(axis=1)
