"""Views of table rows towards their neighbors."""

import numpy as np
import pytest
import torch

from mercer.exceptions import InvalidParameterError
from mercer.kernels import Gaussian, Linear
from mercer.views.neighbors import STRENGTHS, NeighborMixing, references_of, squared_distances, strength_of
from mercer.views.sources import Augmented
from tests.examples_of import numbers

ROWS = torch.from_numpy(numbers(60, 3))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_view_is_on_the_way_to_one_of_the_nearest():
    view = NeighborMixing(ROWS, Gaussian(1.0), 0.8, n_neighbors=4)(ROWS, generator())
    distances = torch.cdist(ROWS, ROWS).fill_diagonal_(torch.inf)
    nearest = distances.topk(4, largest=False).indices
    for i in range(60):
        step = view[i] - ROWS[i]
        ways = ROWS[nearest[i]] - ROWS[i]
        t = (ways @ step) / ways.square().sum(dim=1)
        rest = (step - t[:, None] * ways).abs().amax(dim=1)
        assert rest.min() < 1e-10
        assert 0.0 <= t[rest.argmin()] <= 0.8
    torch.testing.assert_close(NeighborMixing(ROWS, Gaussian(1.0), 0.0)(ROWS, generator()), ROWS)


def test_equal_rows_are_no_neighbors():
    twice = torch.cat([ROWS, ROWS])
    view = NeighborMixing(twice, Gaussian(1.0), 1.0)(ROWS, generator())
    assert ((view - ROWS).abs().amax(dim=1) > 0).all()


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Linear(), Gaussian(1.0) + 2.0 * Linear()])
def test_distances_are_those_of_the_kernels_space(kernel):
    K = kernel.matrix(ROWS)
    expected = K.diagonal()[:, None] + K.diagonal() - 2.0 * K
    torch.testing.assert_close(squared_distances(kernel, ROWS, ROWS[:20]), expected[:, :20])


def test_the_strength_is_the_largest_at_which_most_rows_stay_themselves():
    chosen = strength_of(ROWS, Gaussian(1.0))
    shares = {}
    for strength in STRENGTHS:
        views = NeighborMixing(ROWS, Gaussian(1.0), strength)(ROWS, generator())
        shares[strength] = float((torch.cdist(views, ROWS).argmin(dim=1) == torch.arange(60)).double().mean())
    assert chosen == max(strength for strength, share in shares.items() if share >= 0.5)
    assert shares[0.25] == 1.0  # less than half of the way


def test_views_do_not_depend_on_units_that_the_kernel_knows():
    scales = np.array([1.0, 100.0, 0.01])
    X = ROWS.numpy()
    one = Augmented.towards_neighbors(X, Gaussian(1.0), 0)
    other = Augmented.towards_neighbors(X * scales, Gaussian(1.0, metric=1 / scales**2), 0)
    assert one.strength == other.strength
    a, b = one(ROWS, generator()).numpy(), other(torch.from_numpy(X * scales), generator()).numpy()
    np.testing.assert_allclose(a * scales, b, rtol=1e-6, atol=1e-8)


def test_references_are_some_of_the_rows():
    assert references_of(np.zeros((7, 2)), 0).shape == (7, 2)
    X = numbers(1500, 2)
    drawn = references_of(X, 0)
    assert drawn.shape == (1000, 2)
    np.testing.assert_array_equal(drawn, references_of(X, 0))
    assert not np.array_equal(drawn, references_of(X, 1))


def test_bad_input_is_named():
    with pytest.raises(InvalidParameterError, match="strength=2.0"):
        NeighborMixing(ROWS, Gaussian(1.0), 2.0)(ROWS, generator())
