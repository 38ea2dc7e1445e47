"""How coefficients become the weights of a graph (Alg. 1, line 14): one object a rule, each with the verb `weights`."""

from abc import ABC, abstractmethod
from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.clustering.affinity import Matrix, unit_columns
from mercer.exceptions import invalid_parameter
from mercer.sinkhorn import balanced


class Affinity(BaseEstimator, ABC):
    """A rule from coefficients to affinities. It is a value: its method never changes it."""

    @abstractmethod
    def weights(self, C: Matrix) -> Matrix:
        """Return the symmetric affinities W, nowhere negative, of shape (n, n).

        Parameters
        ----------
        C : ndarray or sparse matrix of shape (n, n)
            Column i expresses point i.
        """


class PlainAffinity(Affinity):
    """W = |C| + |C|^T, as line 14 of Algorithm 1 has it: points with large coefficients have more say."""

    def weights(self, C: Matrix) -> Matrix:
        return _both_ways(abs(C))


class ScaledAffinity(Affinity):
    """W = |C| + |C|^T with the largest coefficient of every column scaled to 1: every point has the same say."""

    def weights(self, C: Matrix) -> Matrix:
        return _both_ways(unit_columns(C))


class DoublyStochasticAffinity(Affinity):
    """The scaled affinity with rows and columns scaled again, so that all of them sum to 1."""

    def weights(self, C: Matrix) -> Matrix:
        return balanced(_both_ways(unit_columns(C)))


def _both_ways(A: Matrix) -> Matrix:
    W = A + A.T
    return sparse.csr_array(W) if sparse.issparse(W) else W


AFFINITIES: dict[str, type[Affinity]] = {
    "scaled": ScaledAffinity,
    "plain": PlainAffinity,
    "doubly_stochastic": DoublyStochasticAffinity,
}


def check_affinity(affinity: Any) -> Affinity:
    """Return `affinity` as an Affinity: a short-hand such as "scaled" becomes one."""
    if isinstance(affinity, str) and affinity in AFFINITIES:
        return AFFINITIES[affinity]()
    if not isinstance(affinity, Affinity):
        raise invalid_parameter("affinity", affinity, [*AFFINITIES], "An Affinity will do too.")
    return affinity
