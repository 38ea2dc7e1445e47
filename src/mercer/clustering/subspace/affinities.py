"""Rules that turn self-expression coefficients into the weights of a graph (Alg. 1, line 14), one class per rule."""

from abc import ABC, abstractmethod
from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.clustering.affinity import Matrix, unit_columns
from mercer.exceptions import invalid_parameter
from mercer.sinkhorn import balanced


class Affinity(BaseEstimator, ABC):
    """A rule that turns coefficients into affinities. Its method never changes the object."""

    @abstractmethod
    def weights(self, C: Matrix) -> Matrix:
        """Return the affinities W, a symmetric matrix of shape (n, n) without negative entries.

        Parameters
        ----------
        C : ndarray or sparse matrix of shape (n, n)
            Column i has the coefficients that express point i.
        """


class PlainAffinity(Affinity):
    """W = |C| + |C|^T, as in line 14 of Algorithm 1. Points with large coefficients count more."""

    def weights(self, C: Matrix) -> Matrix:
        return _both_ways(abs(C))


class ScaledAffinity(Affinity):
    """W = |C| + |C|^T after the largest coefficient of every column is scaled to 1. All points count equally."""

    def weights(self, C: Matrix) -> Matrix:
        return _both_ways(unit_columns(C))


class DoublyStochasticAffinity(Affinity):
    """The scaled affinity, with its rows and columns scaled again so that each of them sums to 1."""

    def weights(self, C: Matrix) -> Matrix:
        return balanced(_both_ways(unit_columns(C)))


def _both_ways(A: Matrix) -> Matrix:
    """Return A + A^T."""
    W = A + A.T
    return sparse.csr_array(W) if sparse.issparse(W) else W


AFFINITIES: dict[str, type[Affinity]] = {
    "scaled": ScaledAffinity,
    "plain": PlainAffinity,
    "doubly_stochastic": DoublyStochasticAffinity,
}


def check_affinity(affinity: Any) -> Affinity:
    """Return `affinity` as an Affinity; a name such as "scaled" stands for one."""
    if isinstance(affinity, str) and affinity in AFFINITIES:
        return AFFINITIES[affinity]()
    if not isinstance(affinity, Affinity):
        raise invalid_parameter("affinity", affinity, [*AFFINITIES], "An Affinity is also allowed.")
    return affinity
