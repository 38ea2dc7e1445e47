"""Fit of a Gaussian process with one length scale for each column on concrete (927 rows): scikit-learn and GPyTorch."""

import math
import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import Benchmark, RatioClaim
from mercer import Mahalanobis
from mercer.datasets import uci_regression
from mercer.kernels import Gaussian
from mercer.tabular_models.evidence import maximize_evidence

# Steps of Adam, and their size, in GPyTorch's tutorial on exact regression.
ADAM_STEPS, ADAM_RATE = 50, 0.1
# Nats by which our total log evidence may be lower: less than the accuracy of any of the three.
EVIDENCE_MARGIN = 1.0
QUICK_ROWS = 200


class Split(NamedTuple):
    """Training and test rows of the first fixed split, with columns standardized by the training rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Process(NamedTuple):
    """A fitted process in units of y: the kernel scale * exp(-|(x - z) / lengths|^2 / 2), and the noise variance."""

    mean: float
    scale: float
    lengths: np.ndarray
    noise: float
    split: Split

    def covariance(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        apart = (X / self.lengths)[:, None] - (Z / self.lengths)[None]
        return self.scale * np.exp(-0.5 * (apart**2).sum(axis=2))

    def judged(self) -> tuple[float, float]:
        """Return the log evidence of all training rows, copies included, and the mean NLL of the test rows.

        It is computed in the same way for all contestants.
        """
        X, y, X_test, y_test = self.split
        L = np.linalg.cholesky(self.covariance(X, X) + self.noise * np.eye(len(X)))
        half = np.linalg.solve(L, y - self.mean)
        evidence = -0.5 * half @ half - np.log(L.diagonal()).sum() - 0.5 * len(y) * math.log(2 * math.pi)
        across = np.linalg.solve(L, self.covariance(X, X_test))
        variance = self.scale + self.noise - (across**2).sum(axis=0)
        squares = (y_test - self.mean - across.T @ half) ** 2 / variance
        return float(evidence), float(np.mean(0.5 * (np.log(2 * math.pi * variance) + squares)))


def setup(quick: bool) -> Split:
    X, y, test_indices = uci_regression("concrete")
    test = test_indices[0]
    train = np.setdiff1d(np.arange(len(y)), test)
    if quick:
        train = np.random.default_rng(0).choice(train, QUICK_ROWS, replace=False)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    return Split(X[train], y[train], X[test], y[test])


def mercer(split: Split) -> Process:
    """Maximize the evidence as metric="ard" does, on all rows, from the median distance until convergence."""
    center = float(split.y.mean())
    X, y = torch.from_numpy(split.X), torch.from_numpy(split.y - center)[:, None]
    kernel = Gaussian().resolved(X, 0)
    found = maximize_evidence(kernel, X, y, np.zeros(X.shape[1]), np.log(0.05), max_iter=60)
    lengths, noise = kernel.bandwidth * np.exp(found.log_scales), float(np.exp(found.log_noise))
    A = kernel.with_metric(Mahalanobis(np.exp(-found.log_scales))).matrix(X) + noise * torch.eye(len(X)).double()
    scale = float((y * torch.linalg.solve(A, y)).sum() / len(y))
    return Process(center, scale, lengths, scale * noise, split)


def scikit_learn(split: Split) -> Process:
    """Fit scikit-learn's defaults, with bounds that are wide enough for columns without effect."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    start = ConstantKernel() * RBF(np.ones(split.X.shape[1]), (1e-3, 1e5)) + WhiteKernel(1.0, (1e-8, 1e2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessRegressor(start, normalize_y=True).fit(split.X, split.y)
    units = float(np.square(model._y_train_std))
    signal, noise = model.kernel_.k1, model.kernel_.k2.noise_level
    mean = float(model._y_train_mean)
    return Process(mean, units * signal.k1.constant_value, signal.k2.length_scale, units * noise, split)


def gpytorch(split: Split) -> Process:
    """Fit as in GPyTorch's tutorial on exact regression, with one length scale for each column, by float64 Cholesky."""
    import gpytorch as gpt
    import torch

    mean, spread = split.y.mean(), split.y.std()
    X, y = torch.from_numpy(split.X), torch.from_numpy((split.y - mean) / spread)

    class Exact(gpt.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, gpt.likelihoods.GaussianLikelihood())
            self.mean_module = gpt.means.ConstantMean()
            self.covar_module = gpt.kernels.ScaleKernel(gpt.kernels.RBFKernel(ard_num_dims=X.shape[1]))

        def forward(self, x: torch.Tensor) -> Any:
            return gpt.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = Exact().double().train()
    objective = gpt.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=ADAM_RATE)
    # Without this, GPyTorch uses conjugate gradients with random traces for more than 800 rows.
    with gpt.settings.fast_computations(False, False, False), gpt.settings.max_cholesky_size(len(X) + 1):
        for _ in range(ADAM_STEPS):
            optimizer.zero_grad()
            loss = -objective(model(X), y)
            loss.backward()
            optimizer.step()
    units, kernel = float(spread**2), model.covar_module
    return Process(
        float(mean + spread * model.mean_module.constant.item()),
        units * kernel.outputscale.item(),
        kernel.base_kernel.lengthscale.detach().numpy().ravel(),
        units * model.likelihood.noise.item(),
        split,
    )


def check(outputs: Mapping[str, Any]) -> None:
    """Raise unless our fit is as good as each other fit by the log evidence, which all of them maximize.

    The NLL of the test rows is also printed, but does not decide: an optimization that stops early, as the tutorial's
    does, may be better there by chance.
    """
    judged = {name: process.judged() for name, process in outputs.items()}
    for name, (evidence, nll) in judged.items():
        print(f"{name}: log evidence {evidence:.2f}, test NLL {nll:.4f}", file=sys.stderr)
    for name, (evidence, _) in judged.items():
        if judged["mercer"][0] < evidence - EVIDENCE_MARGIN:
            raise AssertionError(f"our log evidence is {judged['mercer'][0]:.2f}, {name}'s {evidence:.2f}")


BENCHMARK = Benchmark(
    "ard_fit",
    setup,
    {"mercer": mercer, "scikit-learn": scikit_learn, "GPyTorch": gpytorch},
    check=check,
    claims=[
        RatioClaim("at least 4 x faster than scikit-learn, as good a fit", "scikit-learn", "mercer", 4.0),
        RatioClaim("at least 4 x faster than GPyTorch, as good a fit", "GPyTorch", "mercer", 4.0),
    ],
)
