"""From coefficients to the weights of a graph: as printed, scaled by column, doubly stochastic."""

import numpy as np
import pytest
from scipy import sparse

from mercer.clustering.affinity import unit_columns
from mercer.clustering.subspace import DoublyStochasticAffinity, PlainAffinity, ScaledAffinity

C = np.array([[0.0, -2.0, 0.0], [1.0, 0.0, 0.0], [-0.5, 1.0, 0.0]])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_weights_are_symmetric(form):
    plain = dense(PlainAffinity().weights(form(C)))
    np.testing.assert_allclose(plain, [[0, 3, 0.5], [3, 0, 1], [0.5, 1, 0]])
    np.testing.assert_allclose(dense(unit_columns(form(C))), [[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(dense(ScaledAffinity().weights(form(C))), [[0, 2, 0.5], [2, 0, 0.5], [0.5, 0.5, 0]])
    np.testing.assert_allclose(dense(DoublyStochasticAffinity().weights(form(C[:2, :2]))), [[0, 1], [1, 0]])
