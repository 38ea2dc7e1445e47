"""Kernel ridge on 5000 landmarks and 20 000 rows: conjugate gradients, compared with sums that serve all ridges."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks import Benchmark, RatioClaim
from mercer.kernels import Laplace
from mercer.tabular_models.landmark_gradients import many_landmarks
from mercer.tabular_models.landmark_ridge import landmark_sums

KERNEL, RIDGE = Laplace(10.0), 0.1
# Tolerance of the predictions relative to their norm: a hundredth of the error that noise of a tenth causes.
AGREEMENT = 1e-3


class Rows(NamedTuple):
    """Rows, targets and landmarks."""

    X: Tensor
    y: Tensor
    landmarks: Tensor


def setup(quick: bool) -> Rows:
    random = np.random.default_rng(0)
    n, d, m = (2000, 20, 300) if quick else (20_000, 20, 5000)
    X = random.normal(size=(n, d))
    y = np.sin(X[:, 0] + X[:, 1]) + 0.3 * X[:, 2] * X[:, 3] + 0.1 * random.normal(size=n)
    return Rows(torch.from_numpy(X), torch.from_numpy(y[:, None]), torch.from_numpy(X[:m]))


def gradients(rows: Rows) -> Tensor:
    return predicted(rows, many_landmarks(KERNEL, rows.X, rows.landmarks, rows.y, RIDGE).x)


def sums(rows: Rows) -> Tensor:
    return predicted(rows, landmark_sums(KERNEL, rows.X, rows.landmarks, rows.y).alpha(RIDGE))


def predicted(rows: Rows, alpha: Tensor) -> Tensor:
    return KERNEL.matrix(rows.X[-500:], rows.landmarks) @ alpha


def check(outputs: Mapping[str, Any]) -> None:
    one, other = outputs["conjugate gradients"], outputs["sums"]
    error = float((one - other).norm() / other.norm())
    if not error <= AGREEMENT:
        raise AssertionError(f"predictions differ by {error:.2g} of their norm; allowed is {AGREEMENT:g}")


BENCHMARK = Benchmark(
    "many_landmarks",
    setup,
    {"conjugate gradients": gradients, "sums": sums},
    check=check,
    claims=[RatioClaim("at least 3 x faster than sums", "sums", "conjugate gradients", 3.0)],
)
