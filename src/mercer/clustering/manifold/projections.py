"""From similarities of codes to doubly stochastic memberships: the two projections that the paper speaks of."""

from typing import Protocol

import torch
from torch import Tensor

from mercer.sinkhorn import doubly_stochastic, sparse_doubly_stochastic


class Projection(Protocol):
    """Π of a symmetric matrix of similarities S: what regularizes <S, Π>, η times, and the η that are tried.

    Attributes
    ----------
    trained : tuple of float
        η of the second stage, if it is not given: the clusters of larger R - R_c are kept.
    sharpest : tuple of float
        η of the memberships that clusters are made of, if it is not given.
    """

    trained: tuple[float, ...]
    sharpest: tuple[float, ...]

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        """Return Π of shape (n, n)."""

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        """Return what has been added to the rows and columns of S, of shape (n,)."""

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        """Return rows of memberships for new points, from their similarities to those of the fit."""


class Entropy:
    """Π with the largest <S, Π> + η entropy(Π): Sinkhorn's projection, positive throughout, which MLC has."""

    # The first is the authors'.
    trained: tuple[float, ...] = (0.175, 0.12)
    sharpest: tuple[float, ...] = (0.02, 0.04, 0.08, 0.12, 0.175, 0.25)

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        return doubly_stochastic(S / eta)

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        return (P.diagonal().log() - S.diagonal() / eta) / 2.0

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        # exp(S_ij / η) u_j, scaled to a sum of 1, is row i of Π for the points of the fit themselves.
        return torch.softmax(S / eta + potentials, dim=1)


class Squares:
    """Π with the largest <S, Π> - η / 2 |Π|^2: sparse, as in the subspace clustering of Lim et al. (2020)."""

    trained: tuple[float, ...] = (1.0, 4.0)
    sharpest: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0)

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        return sparse_doubly_stochastic(S, strength=eta)

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        # η Π = S + f 1^T + 1 f^T where Π is above 0, as the diagonal nearly always is. Where it is not, f follows from
        # the largest entry of the row: that is in a column whose diagonal is above 0, for S is largest on its diagonal.
        f = (eta * P.diagonal() - S.diagonal()) / 2.0
        missing = P.diagonal() <= 0
        largest = P.argmax(dim=1)
        places = torch.arange(len(P), device=P.device)
        other = eta * P[places, largest] - S[places, largest] - f[largest]
        return torch.where(missing, other, f)

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        return onto_simplex((S + potentials) / eta)


def onto_simplex(V: Tensor) -> Tensor:
    """Return the nearest point of the simplex to each row: max(0, v - t) with t such that the sum is 1."""
    falling = V.sort(dim=1, descending=True).values
    counts = torch.arange(1, V.shape[1] + 1, device=V.device, dtype=V.dtype)
    thresholds = (falling.cumsum(dim=1) - 1.0) / counts
    support = (falling > thresholds).sum(dim=1, keepdim=True)
    return (V - thresholds.gather(1, support - 1)).clamp(min=0.0)


PROJECTIONS: dict[str, Projection] = {"entropy": Entropy(), "squares": Squares()}
