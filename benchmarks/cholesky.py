"""Solving a kernel system of 8000 rows to float64 accuracy: a float32 factor with refinement, and a float64 factor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import Benchmark, RatioClaim
from mercer.kernels import Laplace
from mercer.linalg import cholesky, solve_refined

# The largest eigenvalue of the kernel matrix is near n, so this ridge makes the condition number about 1e5.
RIDGE = 0.05


def setup(quick: bool) -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(0)
    n = 500 if quick else 8000
    X = torch.from_numpy(random.normal(size=(n, 20)))
    K = Laplace(5.0).matrix(X)
    K.diagonal().add_(RIDGE)
    return K, torch.from_numpy(random.normal(size=n))


def double(data: tuple[Tensor, Tensor]) -> Tensor:
    return cholesky(data[0]).solve(data[1])


def refined(data: tuple[Tensor, Tensor]) -> Tensor:
    return solve_refined(*data)


def check(outputs: Mapping[str, Any]) -> None:
    torch.testing.assert_close(outputs["refined float32"], outputs["float64"], rtol=1e-8, atol=1e-9)


BENCHMARK = Benchmark(
    "cholesky",
    setup,
    {"float64": double, "refined float32": refined},
    check=check,
    claims=[RatioClaim("at least 1.5 x faster than float64", "float64", "refined float32", 1.5)],
)
