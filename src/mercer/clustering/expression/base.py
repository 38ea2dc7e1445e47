"""What every kind of self-expression gives: the coefficients by which others express a point, from inner products."""

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
    """How points are written as combinations of the points of a dictionary.

    For a target x and a dictionary Z of m points, c minimizes 1/2 |phi(x) - phi(Z) c|^2 plus a penalty, with c_i = 0
    for a target that is itself the i-th point of the dictionary. All of it is in inner products, so that any kernel
    will do. It is a value: its methods never change it.
    """

    # Whether most coefficients are zero by themselves.
    is_sparse: bool = False

    @abstractmethod
    def solver(self, K: Tensor) -> Solver:
        """Do what depends on the dictionary alone, and return the function that expresses targets in it.

        Parameters
        ----------
        K : tensor of shape (m, m)
            Inner products within the dictionary; left as it is.

        Returns
        -------
        function of (k, norms, own) that returns the coefficients of b targets, of shape (m, b)
            k of shape (m, b) has the inner products of the dictionary with the targets, norms of shape (b,) those of
            the targets with themselves. own of shape (b,) says which point of the dictionary a target is, -1 for none;
            None says none for all.
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
