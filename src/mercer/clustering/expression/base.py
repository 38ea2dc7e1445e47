"""The interface of self-expression: coefficients that express points by others, computed from inner products."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.kernels.base import replaced

# (k, norms, own) -> C, see SelfExpression.solver
Solver = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class SelfExpression(BaseEstimator, ABC):
    """How points are written as linear combinations of the points of a dictionary.

    For a target x and a dictionary Z of m points, the coefficients c minimize 1/2 |phi(x) - phi(Z) c|^2 plus a penalty.
    If the target is itself point i of the dictionary, c_i = 0. Only inner products are needed, so any kernel can be
    used. The methods never change the object.
    """

    # Whether the penalty itself sets most coefficients to zero.
    is_sparse: bool = False

    @abstractmethod
    def solver(self, K: Tensor) -> Solver:
        """Return a function that expresses targets by the dictionary, after the work that all targets share.

        Parameters
        ----------
        K : tensor of shape (m, m)
            The inner products of the dictionary's points with each other. It is not changed.

        Returns
        -------
        function of (k, norms, own) that returns the coefficients of b targets, of shape (m, b)
            k of shape (m, b) has the inner products of the dictionary with the targets, and norms of shape (b,) those
            of each target with itself. own of shape (b,) has the number of the dictionary's point that each target is,
            or -1 if it is none. own=None means that no target is in the dictionary.
        """

    def within(self, K: Tensor) -> Tensor:
        """Return the coefficients of the dictionary's own points, each expressed by the others; of shape (m, m)."""
        own = torch.arange(len(K), device=K.device)
        return self.solver(K)(K, K.diagonal(), own)

    def with_params(self, **params: Any) -> "SelfExpression":
        """Return a copy with some parameters replaced."""
        return replaced(self, params)


def without_own(C: Tensor, own: Tensor | None) -> Tensor:
    """Set the coefficient of each target's own point to zero, in place."""
    if own is not None:
        (targets,) = torch.nonzero(own >= 0, as_tuple=True)
        C[own[targets], targets] = 0.0
    return C
