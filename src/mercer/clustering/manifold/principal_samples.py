"""The samples nearest to each principal direction of a cluster (appendix A of the paper on MLC)."""

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
        The row numbers of the samples, one row per direction, with the nearest sample first. Directions are in
        decreasing order of their shares.
    cosines : ndarray of shape (r, s)
        The cosines between the features of the samples and the direction. The sign of a direction is chosen such that
        its nearest sample has a positive cosine; samples with a negative one point in the opposite direction.
    shares : ndarray of shape (r,)
        The share of the cluster's squared lengths along each direction.
    """

    rows: np.ndarray
    cosines: np.ndarray
    shares: np.ndarray


def principal_samples(
    features: Any, labels: Any, *, n_directions: int = 8, n_samples: int = 8
) -> dict[Any, PrincipalSamples]:
    """Return the samples nearest to each principal direction of each cluster, which show what the direction means.

    The directions of a cluster with unit features Z are the leading right singular vectors v of Z. The nearest samples
    have the largest |z . v|. The sign does not count, since a subspace extends both ways.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Rows are scaled to length 1. Rows of zeros are not near to any direction.
    labels : array-like of shape (n,)
        The clusters.
    n_directions : int, default=8
        The largest number of directions of a cluster, which has at most as many as the rank of its features.
    n_samples : int, default=8
        The largest number of samples for a direction. A sample may be near to several directions.

    Returns
    -------
    dict from label to PrincipalSamples
        In the order of the labels.

    Notes
    -----
    The paper uses principal component analysis, and does not say whether features are centered. Here they are not.
    Clusters are subspaces through the origin, as for their numerical ranks, and the first direction is what all samples
    of a cluster have in common. Centering removes that direction, and no samples are near to the others: on the digits
    of scikit-learn, by class, the 8 nearest samples have a mean |cosine| of 0.97 to the first direction, and of 0.43 to
    the first one of centered features.

    The time is O(n_k d min(n_k, d)) for a cluster of n_k samples, for a singular value decomposition.

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
    # In float64, float32 features of rank 1 have further directions that are due to rounding.
    given = np.asarray(features).dtype
    eps = float(np.finfo(given if given.kind == "f" else np.float64).eps)
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    found = {}
    for code, name in enumerate(names.tolist()):
        members = np.flatnonzero(codes == code)
        found[name] = _nearest(Z[members], members, n_directions, n_samples, eps)
    return found


def _nearest(Z: np.ndarray, members: np.ndarray, n_directions: int, n_samples: int, eps: float) -> PrincipalSamples:
    """Return the principal samples of one cluster; Z has its unit features, and `members` its row numbers."""
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    rank = int(np.sum(s > max(Z.shape) * eps * s[0]))
    C = Vt[: min(rank, n_directions)] @ Z.T
    # Cosines that are equal except for rounding keep the order of the samples. In a cluster of two samples, for
    # example, both are equally near to each direction.
    nearest = np.argsort(-np.abs(C).round(6), axis=1, kind="stable")[:, :n_samples]
    cosines = np.take_along_axis(C, nearest, axis=1)
    shares = s[: len(C)] ** 2 / max(float(np.sum(s**2)), eps)
    return PrincipalSamples(members[nearest], np.copysign(1.0, cosines[:, :1]) * cosines, shares)
