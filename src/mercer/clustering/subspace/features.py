"""Rows under learned projections: unit rows, rotated into their span, projected again and again (Algorithm 1)."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.subspace.precision import Projection
from mercer.kernels import InnerProductKernel, Kernel, RadialKernel
from mercer.linalg import in_row_span, threads_for
from mercer.mahalanobis import Mahalanobis


def unit_rows(X: Tensor) -> Tensor:
    """Return the rows divided by their norms; rows of zeros stay as they are."""
    # By the largest entry first: the squares of very small or large ones would be 0 or infinite.
    largest = X.abs().amax(dim=1, keepdim=True)
    scaled = X / torch.where(largest > 0, largest, 1.0)
    norms = scaled.norm(dim=1, keepdim=True)
    return scaled / torch.where(norms > 0, norms, 1.0)


class Features(NamedTuple):
    """Rows as they are now, and the projections that led there: unit rows of X times all factors.

    Normalizing rows in between changes lengths only, so that the product of the factors alone carries over to new rows.
    It is formed for the features that are kept, and not for every one that is compared.

    Attributes
    ----------
    rows : tensor of shape (n, r)
    factors : tuple of tensors
        The first of shape (d, .), the last of shape (., r); without any, the rows are X.
    """

    rows: Tensor
    factors: tuple[Tensor, ...] = ()

    def projected(self, projection: Projection, *, keep_axes: bool = True) -> "Features":
        """Return the features after one more projection, with unit rows (Alg. 1, lines 10 and 11).

        Where nothing depends on the axes, the rows stay in the coordinates of the covariance's eigenvectors.
        """
        P = projection.matrix() if keep_axes else projection.along_directions()
        return Features(unit_rows(self.rows @ P), (*self.factors, P))

    def map(self) -> Tensor | None:
        """Return the product of the factors, of shape (d, r); None is the identity."""
        return reduce(torch.mm, self.factors) if self.factors else None

    def metric(self) -> Mahalanobis:
        """Return the product of the projections as a metric, scaled to the trace d."""
        L = self.map()
        return Mahalanobis() if L is None else Mahalanobis(L.cpu().numpy()).normalized()


def in_their_span(rows: Tensor) -> Features:
    """Return n rows of more than n columns in coordinates of their span, of which there are n at most."""
    if rows.shape[0] >= rows.shape[1]:
        return Features(rows)
    coordinates, V = in_row_span(rows)
    return Features(coordinates, (V,))


def is_rotation_invariant(kernel: Kernel) -> bool:
    """Whether a kernel is known to see lengths and angles only, and not the coordinates."""
    return all(isinstance(leaf, (RadialKernel, InnerProductKernel)) and leaf.metric is None for leaf in kernel.leaves())


def new_rows(X: Tensor, metric: Mahalanobis, *, normalize: bool) -> Tensor:
    """Return rows that were not in the fit as `Features.rows` would have them."""
    X = unit_rows(X) if normalize else X
    return X if metric.factor is None else unit_rows(metric.project(X))


def subspace_bases(X: np.ndarray, labels: np.ndarray, n_clusters: int, energy: float) -> list[np.ndarray]:
    """Return an orthonormal basis, in rows, of the subspace through the origin that each cluster lies near.

    Its dimension is the least with which the subspace holds that share of the cluster's squared lengths.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
    n_clusters : int
    energy : float
        Above 0, at most 1.
    """
    bases = []
    for cluster in range(n_clusters):
        members = X[labels == cluster]
        with threads_for(min(members.shape)):
            _, s, Vt = np.linalg.svd(members, full_matrices=False)
        total = np.cumsum(s**2)
        # Rounding must not add a direction to a share of 1.
        rank = int(np.searchsorted(total, energy * total[-1] * (1 - 1e-12))) + 1 if s.any() else 0
        bases.append(Vt[: min(rank, len(s))])
    return bases
