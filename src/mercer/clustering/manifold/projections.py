"""The two projections of the paper that turn similarities of codes into doubly stochastic memberships."""

from typing import Protocol

import torch
from torch import Tensor

from mercer.sinkhorn import doubly_stochastic, sparse_doubly_stochastic


class Projection(Protocol):
    """A projection of a symmetric matrix of similarities S to a doubly stochastic Π.

    Π maximizes <S, Π> plus η times a regularizer.

    Attributes
    ----------
    trained : tuple of float
        The η that the second stage tries if η is not given. The clusters with the largest R - R_c are kept.
    sharpest : tuple of float
        The η of the memberships from which clusters are found, if η is not given.
    """

    trained: tuple[float, ...]
    sharpest: tuple[float, ...]

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        """Return Π of shape (n, n)."""

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        """Return the potentials, of shape (n,): the numbers that were added to the rows and columns of S."""

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        """Return the rows of memberships of new points, from their similarities S to the points of the fit."""


class Entropy:
    """Π maximizes <S, Π> + η entropy(Π): Sinkhorn's projection, with positive entries, as in MLC."""

    # The first value is that of the authors.
    trained: tuple[float, ...] = (0.175, 0.12)
    sharpest: tuple[float, ...] = (0.02, 0.04, 0.08, 0.12, 0.175, 0.25)

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        return doubly_stochastic(S / eta)

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        return (P.diagonal().log() - S.diagonal() / eta) / 2.0

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        # For points of the fit, row i of Π is exp(S_ij / η) u_j, scaled to a sum of 1.
        return torch.softmax(S / eta + potentials, dim=1)


class Squares:
    """Π maximizes <S, Π> - η / 2 |Π|^2 and is sparse, as in the subspace clustering of Lim et al. (2020)."""

    trained: tuple[float, ...] = (1.0, 4.0)
    sharpest: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0)

    def matrix(self, S: Tensor, eta: float) -> Tensor:
        return sparse_doubly_stochastic(S, strength=eta)

    def potentials(self, S: Tensor, P: Tensor, eta: float) -> Tensor:
        # Where Π is positive, η Π = S + f 1^T + 1 f^T. The diagonal is nearly always positive and then gives f. If not,
        # f follows from the largest entry of the row. The diagonal of its column is positive, since S is largest on
        # the diagonal.
        f = (eta * P.diagonal() - S.diagonal()) / 2.0
        missing = P.diagonal() <= 0
        largest = P.argmax(dim=1)
        places = torch.arange(len(P), device=P.device)
        other = eta * P[places, largest] - S[places, largest] - f[largest]
        return torch.where(missing, other, f)

    def rows(self, S: Tensor, potentials: Tensor, eta: float) -> Tensor:
        return onto_simplex((S + potentials) / eta)


def onto_simplex(V: Tensor) -> Tensor:
    """Return for each row v the nearest point of the simplex: max(0, v - t), with t such that the sum is 1."""
    falling = V.sort(dim=1, descending=True).values
    counts = torch.arange(1, V.shape[1] + 1, device=V.device, dtype=V.dtype)
    thresholds = (falling.cumsum(dim=1) - 1.0) / counts
    support = (falling > thresholds).sum(dim=1, keepdim=True)
    return (V - thresholds.gather(1, support - 1)).clamp(min=0.0)


PROJECTIONS: dict[str, Projection] = {"entropy": Entropy(), "squares": Squares()}
