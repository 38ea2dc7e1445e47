"""Projections that shape a covariance: isotropic by line 6 or the lemma, elliptical, of low rank; in either space."""

import numpy as np
import pytest
import torch

from mercer.clustering.subspace import Covariance, Precision
from mercer.clustering.subspace.feature_learning import check_feature_learning
from mercer.clustering.subspace.precision import data_covariance, latent_covariance
from mercer.kernels import Gaussian
from tests.examples_of import numbers

COVARIANCE = torch.diag(torch.tensor([4.0, 1.0, 0.25, 0.0], dtype=torch.float64))
WEIGHTS = {
    "lemma": lambda D, shrinkage: 1 / (D + shrinkage),
    "algorithm": lambda D, shrinkage: D / (D + shrinkage) ** 2,
}


def expected(weights, rotation):
    return rotation @ torch.diag((weights / weights.max()).sqrt()) @ rotation.T


@pytest.mark.parametrize("inversion", WEIGHTS)
@pytest.mark.parametrize("relative", [True, False])
def test_projection_follows_lines_5_to_9(inversion, relative):
    rotation = torch.linalg.qr(torch.from_numpy(numbers(4, 4)))[0]
    learner = Precision(0.1, inversion=inversion, relative=relative)
    (projection,) = learner.shaped(rotation @ COVARIANCE @ rotation.T)
    weights = WEIGHTS[inversion](COVARIANCE.diagonal(), 0.1 * 4.0 if relative else 0.1)
    # The root of an eigenvalue of zero has half of the digits.
    torch.testing.assert_close(projection.matrix(), expected(weights, rotation), rtol=1e-7, atol=1e-7)
    assert float(projection.weights.max()) == 1.0


def test_auto_offers_both_inversions():
    both = [projection.matrix() for projection in Precision(0.2).shaped(COVARIANCE)]
    single = [Precision(0.2, inversion=name).shaped(COVARIANCE)[0].matrix() for name in ("algorithm", "lemma")]
    torch.testing.assert_close(both, single)


def test_an_elliptical_target_keeps_the_covariance():
    rotation = torch.linalg.qr(torch.from_numpy(numbers(4, 4)))[0]
    (projection,) = Covariance().shaped(rotation @ COVARIANCE @ rotation.T)
    torch.testing.assert_close(projection.matrix(), expected(COVARIANCE.diagonal(), rotation), rtol=1e-7, atol=1e-7)


def test_a_target_of_low_rank_keeps_the_directions_of_the_largest_weights():
    kept = Precision(0.1, inversion="lemma", n_directions=2).shaped(COVARIANCE)[0].matrix()
    assert np.allclose(np.diag(kept)[:2], 0.0)
    assert np.all(np.diag(kept)[2:] > 0)
    kept = Covariance(n_directions=2).shaped(COVARIANCE)[0].matrix()
    assert np.all(np.diag(kept)[:2] > 0)
    assert np.allclose(np.diag(kept)[2:], 0.0)


@pytest.mark.parametrize(("space", "covariance"), [("latent", latent_covariance), ("data", data_covariance)])
@pytest.mark.parametrize("learner", [Precision, Covariance])
def test_the_space_says_whose_covariance_is_shaped(space, covariance, learner):
    X, kernel = torch.from_numpy(numbers(8, 3)), Gaussian(1.0)
    found = learner(space=space).projections(kernel, X, kernel.matrix(X), 0.2)
    wanted = learner().shaped(covariance(kernel, X, 0.2))
    torch.testing.assert_close([one.matrix() for one in found], [one.matrix() for one in wanted])


def test_short_hands_and_bad_settings():
    assert check_feature_learning("none") is None
    assert isinstance(check_feature_learning("precision"), Precision)
    assert isinstance(check_feature_learning("covariance"), Covariance)
    X, kernel = torch.from_numpy(numbers(5, 3)), Gaussian(1.0)
    bad = {
        "shrinkage=-1.0": Precision(-1.0),
        "inversion='inverse'": Precision(inversion="inverse"),
        "n_directions=0": Covariance(n_directions=0),
        "space='input'": Precision(space="input"),
    }
    for message, learner in bad.items():
        with pytest.raises(ValueError, match=message):
            learner.projections(kernel, X, kernel.matrix(X), 0.1)
