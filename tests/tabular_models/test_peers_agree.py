"""The same settings in the peers' own code give the same numbers."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer import GPRegressor
from mercer.kernels import Gaussian, Laplace, Matern32, Matern52, ProductLaplace
from mercer.selection import best, evaluate
from mercer.tabular_models.recursion import recursive_features
from tests.examples_of import numbers


def rows(n=24, d=4):
    X = torch.from_numpy(numbers(n, d))  # up to 25 rows torch.cdist takes differences, so that equal rows are 0 apart
    return X, ((X[:, 0] + X[:, 1]) ** 2 - 0.3 * X[:, 2])[:, None]


@pytest.mark.parametrize(
    ("name", "kernel", "diagonal"),
    [("l2", Laplace, True), ("l2", Laplace, False), ("l2_high_dim", Laplace, False), ("l1", ProductLaplace, True)],
)
@pytest.mark.parametrize("outputs", [1, 2])
def test_iterates_equal_those_of_xrfm(name, kernel, diagonal, outputs):
    if (name, outputs) == ("l1", 2):
        pytest.skip("xRFM 0.4 differentiates torch.cdist under vmap, which is wrong for several outputs and p = 1")
    RFM = pytest.importorskip("xrfm.rfm_src").RFM
    X, y = rows()
    y = torch.cat([y, y.roll(1, dims=0)], dim=1)[:, :outputs]
    bandwidth, ridge, steps = 2.0, 0.1, 3
    peer = RFM(name, bandwidth=bandwidth, iters=steps, diag=diagonal, device="cpu", verbose=False)
    metrics = peer.fit(
        (X, y),
        (X, y),
        iters=steps,
        reg=ridge,
        return_Ms=True,
        return_best_params=False,
        early_stop_rfm=False,
        M_batch_size=len(X),
        total_points_to_sample=len(X),
        verbose=False,
    )

    def fit(metric_kernel):
        # xRFM scales M to a largest entry of 1, this house to a trace of d: the bandwidth takes the difference.
        largest = np.abs(metric_kernel.single_metric().matrix(4)).max()
        return best(evaluate(metric_kernel.with_params(bandwidth=bandwidth * largest**0.5), [ridge], X, y))

    kind = "diagonal" if diagonal else "full"
    iterates = list(recursive_features(kernel(bandwidth), X, fit, metric=kind, n_iter=steps))
    for iterate, M in zip(iterates[1:], metrics, strict=True):
        M = np.diag(M) if diagonal else M.numpy()
        ours = iterate.kernel.single_metric().matrix(4)
        assert_allclose(ours / np.trace(ours), M / np.trace(M), atol=1e-6)
    at = torch.from_numpy(numbers(7, 4, seed=5))
    predicted = iterates[-1].kernel.matrix(at, X) @ iterates[-1].solution.alpha
    assert_allclose(predicted, peer.predict(at), atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "peer_name", "options"),
    [
        (Gaussian(1.3), "RBFKernel", {}),
        (Laplace(1.3), "MaternKernel", {"nu": 0.5}),
        (Matern32(1.3), "MaternKernel", {"nu": 1.5}),
        (Matern52(1.3), "MaternKernel", {"nu": 2.5}),
    ],
)
def test_the_posterior_equals_that_of_gpytorch(kernel, peer_name, options):
    gpytorch = pytest.importorskip("gpytorch")
    X, y = rows(40)
    y = y[:, 0] - y.mean()

    class Peer(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(getattr(gpytorch.kernels, peer_name)(**options))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    peer = Peer(likelihood).double().eval()
    likelihood.eval()
    likelihood.noise, peer.covar_module.outputscale, peer.covar_module.base_kernel.lengthscale = 0.1, 2.0, 1.3
    model = GPRegressor(
        kernel, "identity", warp="none", bandwidth=None, noise=0.1, output_scale=2.0, standardize=False, average=False
    ).fit(X.numpy(), y.numpy())
    at = torch.from_numpy(numbers(7, 4, seed=5))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        expected = likelihood(peer(at))
    mean, covariance = model.predict(at.numpy(), return_cov=True)
    assert_allclose(mean, expected.mean, atol=1e-6)
    assert_allclose(covariance, expected.covariance_matrix, atol=1e-6)
