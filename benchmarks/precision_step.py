"""Line 4 of Algorithm 1 with n = 640, d = 2016, Gaussian kernel, float64: the loop as printed, and the closed form."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import Benchmark, RatioClaim
from mercer.clustering.subspace.features import in_their_span, unit_rows
from mercer.clustering.subspace.precision import latent_covariance
from mercer.kernels import Gaussian

BANDWIDTH, RIDGE = 0.8, 0.1


def setup(quick: bool) -> Tensor:
    """Return unit rows like ten faces under 64 lights: ten noisy subspaces of nine dimensions each."""
    random = np.random.default_rng(0)
    clusters, points, d = (3, 10, 60) if quick else (10, 64, 2016)
    parts = [random.normal(size=(points, 9)) @ random.normal(size=(9, d)) for _ in range(clusters)]
    X = np.vstack(parts)
    return unit_rows(torch.from_numpy(X + 0.1 * random.normal(size=X.shape)))


def as_written(X: Tensor) -> Tensor:
    """Compute, for each point, the inverse of the kernel matrix of the others and its products with derivatives."""
    n, d = X.shape
    K = Gaussian(BANDWIDTH).matrix(X)
    total = X.new_zeros((d, d))
    for i in range(n):
        others = torch.arange(n) != i
        K_i = K[others][:, others]
        inverse = torch.linalg.inv(K_i + RIDGE * torch.eye(n - 1, dtype=X.dtype))
        G = K[i, others][:, None] * (X[others] - X[i]) / BANDWIDTH**2
        total += G.T @ (inverse @ K_i @ inverse @ G)
    return total / n


def closed_form(X: Tensor) -> Tensor:
    return latent_covariance(Gaussian(BANDWIDTH), X, RIDGE)


def in_the_span(X: Tensor) -> Tensor:
    """Compute the same in n coordinates of the span of the points, and rotate it back, which is part of the time."""
    features = in_their_span(X)
    Sigma = latent_covariance(Gaussian(BANDWIDTH), features.rows, RIDGE)
    L = features.map()
    return Sigma if L is None else L @ Sigma @ L.T


def check(outputs: Mapping[str, Any]) -> None:
    expected = outputs["as written"]
    for name in ("closed form", "in the span"):
        difference = (outputs[name] - expected).abs().max() / expected.abs().max()
        if difference > 1e-10:
            raise AssertionError(f"{name} differs from the loop by {difference:.1e}")


BENCHMARK = Benchmark(
    "precision_step",
    setup,
    {"as written": as_written, "closed form": closed_form, "in the span": in_the_span},
    check=check,
    claims=[
        RatioClaim("closed form at least 100 x faster than the loop", "as written", "closed form", 100.0),
        RatioClaim("in the span at least 100 x faster than the loop", "as written", "in the span", 100.0),
    ],
)
