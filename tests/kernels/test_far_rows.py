"""Rows so far away that squared distances are no numbers: kernels are 0 there, never NaN."""

import numpy as np
import pytest
import torch

from mercer import Mahalanobis
from mercer.kernels import Gaussian
from tests.examples_of import METRICS, RADIAL, numbers

DECAYING = {name: kernel for name, kernel in RADIAL.items() if name != "custom"}
# Powers of a distance never reach 0.
SMALLEST = {"rational_quadratic": 1e-100}


@pytest.mark.parametrize("cell", [1e100, 1e155, -1e155, 1e300, 1.7e308])
@pytest.mark.parametrize("name", DECAYING)
def test_a_row_too_far_to_measure_is_like_none_but_itself(name, cell):
    kernel = DECAYING[name]
    X = numbers(6, 3) + np.array([50.0, 0.0, 0.0])  # an offset, so that rows are moved to their mean
    X[2, 1] = cell
    K = kernel.matrix(X)
    assert np.isfinite(K).all()
    assert (K[2, [0, 1, 3, 4, 5]] <= SMALLEST.get(name, 0.0)).all()
    assert K[2, 2] == K[0, 0] > 0
    near = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(K[np.ix_(near, near)], kernel.matrix(X[near]), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in METRICS if name not in ("full", "low_rank")])
def test_distances_that_overflow_are_the_largest_number(name):
    metric = METRICS[name](3) or Mahalanobis()
    X = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0], [1e200, 1.0, 0.0]])
    distances = metric.distance(X)
    assert np.isfinite(distances).all()
    assert distances[1, 1] == 0.0
    assert distances[0, 1] > 1e150


def test_in_single_precision_too():
    X = torch.tensor([[0.0, 0.0], [1e20, 1.0], [1.0, 1.0]])
    K = Gaussian(1.0).matrix(X)
    assert torch.isfinite(K).all()
    assert K[0, 1] == 0 == K[1, 2]
