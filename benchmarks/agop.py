"""The average gradient outer product at n = 8000, d = 20 in float64: the closed form and autograd."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from benchmarks import Benchmark, RatioClaim
from mercer.agop import agop
from mercer.kernels import Laplace

BANDWIDTH = 5.0


def setup(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    n = 500 if quick else 8000
    return random.normal(size=(n, 20)), random.normal(size=n)


def closed_form(data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    X, alpha = data
    return agop(Laplace(BANDWIDTH), X, X, alpha)


def autograd(data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Compute the same as one would write it in torch, without blocks."""
    Z, alpha = map(torch.from_numpy, data)
    X = Z.clone().requires_grad_()
    r2 = (X.square().sum(1)[:, None] + Z.square().sum(1) - 2 * X @ Z.T).clamp(min=0)
    # The square root has no derivative at 0, so the diagonal is excluded.
    r = torch.where(r2 > 1e-12, r2.clamp(min=1e-12).sqrt(), 0.0)
    predictions = torch.exp(-r / BANDWIDTH) @ alpha
    (G,) = torch.autograd.grad(predictions.sum(), X)
    return (G.T @ G / len(G)).numpy()


def check(outputs: Mapping[str, Any]) -> None:
    np.testing.assert_allclose(outputs["closed form"], outputs["autograd"], rtol=1e-6, atol=1e-9)


BENCHMARK = Benchmark(
    "agop",
    setup,
    {"autograd": autograd, "closed form": closed_form},
    check=check,
    claims=[
        RatioClaim("at least 4 x faster than autograd", "autograd", "closed form", 4.0),
        RatioClaim("in at most a fifth of the memory", "autograd", "closed form", 5.0, of="memory"),
    ],
)
