"""What does each direction of a cluster stand for? The samples nearest to it (appendix A of the paper on MLC)."""

from typing import Any, NamedTuple

import numpy as np

from mercer.blocks import as_tensor
from mercer.checks import check_count
from mercer.clustering.subspace.features import unit_rows
from mercer.metrics import check_labels, check_matrix


class PrincipalSamples(NamedTuple):
    """The samples nearest to each principal direction of one cluster.

    Attributes
    ----------
    rows : ndarray of shape (r, s)
        Samples by their row among all, a direction a row, the nearest first; the first direction holds most.
    cosines : ndarray of shape (r, s)
        Between their features and the direction, whose sign is that of its nearest sample: those below zero point the
        other way.
    shares : ndarray of shape (r,)
        Of the cluster's squared lengths, which part is along each direction.
    """

    rows: np.ndarray
    cosines: np.ndarray
    shares: np.ndarray


def principal_samples(
    features: Any, labels: Any, *, n_directions: int = 8, n_samples: int = 8
) -> dict[Any, PrincipalSamples]:
    """What do the directions inside each cluster stand for? Return the samples whose features are nearest to them.

    The directions of a cluster with unit features Z are the leading right singular vectors v of Z, and near to one are
    the samples with the largest |z . v|: a subspace goes on in both directions.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Scaled to length 1 here; rows of zeros are near to nothing.
    labels : array-like of shape (n,)
        The clusters.
    n_directions : int, default=8
        The most directions of a cluster; it has no more than the rank of its features.
    n_samples : int, default=8
        The most samples a direction; a small cluster has fewer. A sample may be near to several.

    Returns
    -------
    dict from label to PrincipalSamples
        In the order of the labels.

    Notes
    -----
    The paper says principal component analysis, and not whether features are centered. Here they are not: clusters are
    subspaces through the origin, as in their numerical ranks, and what is common to a cluster is its first direction.
    Without the mean that direction is lost, and nothing is near to those that are left: on the digits of scikit-learn,
    by class, the 8 nearest have a mean |cosine| of 0.97 to the first direction, and of 0.43 to the first one of
    centered features. One singular value decomposition a cluster of n_k samples: O(n_k d min(n_k, d)).

    Examples
    --------
    >>> from mercer.clustering.manifold.principal_samples import principal_samples
    >>> features = [[1.0, 0.0], [0.9, 0.1], [0.5, 0.5], [0.0, -1.0], [0.1, 0.9]]
    >>> principal_samples(features, [0, 0, 1, 1, 1], n_directions=1)[1].rows
    array([[4, 3, 2]])
    """
    Z = check_matrix("features", features)
    check_labels("labels", labels, len(Z))
    check_count("n_directions", n_directions)
    check_count("n_samples", n_samples)
    Z = unit_rows(as_tensor(Z)).numpy()
    # float32 features of rank 1 have other directions in float64, of rounding alone.
    given = np.asarray(features).dtype
    eps = float(np.finfo(given if given.kind == "f" else np.float64).eps)
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    found = {}
    for code, name in enumerate(names.tolist()):
        members = np.flatnonzero(codes == code)
        found[name] = _nearest(Z[members], members, n_directions, n_samples, eps)
    return found


def _nearest(Z: np.ndarray, members: np.ndarray, n_directions: int, n_samples: int, eps: float) -> PrincipalSamples:
    """Return the principal samples of one cluster with unit features Z, whose rows are `members` among all."""
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    rank = int(np.sum(s > max(Z.shape) * eps * s[0]))
    C = Vt[: min(rank, n_directions)] @ Z.T
    # What is equal but for rounding stays in the order of the samples: of two, both are as near to each direction.
    nearest = np.argsort(-np.abs(C).round(6), axis=1, kind="stable")[:, :n_samples]
    cosines = np.take_along_axis(C, nearest, axis=1)
    shares = s[: len(C)] ** 2 / max(float(np.sum(s**2)), eps)
    return PrincipalSamples(members[nearest], np.copysign(1.0, cosines[:, :1]) * cosines, shares)
