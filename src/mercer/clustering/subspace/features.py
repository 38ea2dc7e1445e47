"""Rows under learned projections: scaled to length 1, rotated into their span, and projected repeatedly (Alg. 1)."""

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
    """Return the rows divided by their norms; rows of zeros remain zero."""
    # Rows are divided by their largest entry first, since squares of very small or large numbers are 0 or infinite.
    largest = X.abs().amax(dim=1, keepdim=True)
    scaled = X / torch.where(largest > 0, largest, 1.0)
    norms = scaled.norm(dim=1, keepdim=True)
    return scaled / torch.where(norms > 0, norms, 1.0)


class Features(NamedTuple):
    """The current features of the rows, and the projections that led to them: X times all factors, as unit rows.

    Scaling rows between projections changes their lengths only. The product of the factors therefore suffices for new
    rows. It is formed only for the features that are kept, and not for all that are compared.

    Attributes
    ----------
    rows : tensor of shape (n, r)
    factors : tuple of tensors
        The first has the shape (d, .) and the last (., r). Without factors, the rows are X.
    """

    rows: Tensor
    factors: tuple[Tensor, ...] = ()

    def projected(self, projection: Projection, *, keep_axes: bool = True) -> "Features":
        """Return the features after one more projection, as unit rows (Alg. 1, lines 10 and 11).

        With keep_axes=False, the rows have the coordinates along the eigenvectors of the covariance. This saves work,
        and is allowed if nothing depends on the axes.
        """
        P = projection.matrix() if keep_axes else projection.along_directions()
        return Features(unit_rows(self.rows @ P), (*self.factors, P))

    def map(self) -> Tensor | None:
        """Return the product of the factors, of shape (d, r); None means the identity."""
        return reduce(torch.mm, self.factors) if self.factors else None

    def metric(self) -> Mahalanobis:
        """Return the product of the projections as a metric, scaled to the trace d."""
        L = self.map()
        return Mahalanobis() if L is None else Mahalanobis(L.cpu().numpy()).normalized()


def in_their_span(rows: Tensor) -> Features:
    """Return rows in coordinates of their span if there are fewer rows than columns; otherwise unchanged."""
    if rows.shape[0] >= rows.shape[1]:
        return Features(rows)
    coordinates, V = in_row_span(rows)
    return Features(coordinates, (V,))


def is_rotation_invariant(kernel: Kernel) -> bool:
    """Return whether a kernel is known to depend on lengths and angles only, and not on the coordinates."""
    return all(isinstance(leaf, (RadialKernel, InnerProductKernel)) and leaf.metric is None for leaf in kernel.leaves())


def new_rows(X: Tensor, metric: Mahalanobis, *, normalize: bool) -> Tensor:
    """Return the features of rows that were not in the fit, as `Features.rows` has them for rows of the fit."""
    X = unit_rows(X) if normalize else X
    return X if metric.factor is None else unit_rows(metric.project(X))


def subspace_bases(X: np.ndarray, labels: np.ndarray, n_clusters: int, energy: float) -> list[np.ndarray]:
    """Return for each cluster an orthonormal basis, in rows, of a subspace through the origin near its points.

    The subspace has the smallest dimension with which it contains a share `energy` of the points' squared lengths.

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
        # Rounding must not add a direction if the share is 1.
        rank = int(np.searchsorted(total, energy * total[-1] * (1 - 1e-12))) + 1 if s.any() else 0
        bases.append(Vt[: min(rank, len(s))])
    return bases
