"""The toy of section 5.1: three subspaces of R^5 that share three directions, Figures 1 and 2."""

from typing import Any

import numpy as np
import torch

from mercer.clustering.expression.ridge import absolute_ridge, left_out_coefficients, regularized_inverse
from mercer.clustering.subspace import Precision
from mercer.clustering.subspace.features import Features, unit_rows
from mercer.clustering.subspace.precision import latent_covariance
from mercer.kernels import Gaussian, Kernel, Polynomial
from mercer.metrics import block_mass

from .geometry import before_and_after

# The third basis vector is garbled in the paper: here are its numbers as printed, and read as fractions.
THIRD = {"as printed": (5.2, 5**0.5, 1.0, 5**0.5, 0.0), "fractions": (5.2 / 5**0.5, 1 / 5**0.5, 0.0, 0.0, 0.0)}
# Deviations of the normal coefficients of the first vector, and of e_3, e_4 and e_5. If one-sided, the absolute values
# of the first are taken.
SPREADS = (1.0, 0.1, 0.1, 0.1)
POINTS = 50  # of each subspace
ITERATIONS = 10

# The lambdas of lines 3 and 6, which the paper does not give. "line 6" uses D / (D + lambda)^2 and absolute lambdas, as
# printed.
STEPS: dict[str, dict[str, dict[str, Any]]] = {
    "quadratic": {
        "line 6": {"ridge": 0.1, "shrinkage": 0.1, "inversion": "algorithm", "relative": False},
        "lemma": {"ridge": 0.1, "shrinkage": 1.0, "inversion": "lemma", "relative": True},
    },
    "gaussian": {"line 6": {"ridge": 1.0, "shrinkage": 1.0, "inversion": "algorithm", "relative": False}},
}


def toy_name(kernel: str, third: str, step: str) -> str:
    return f"{kernel}, third vector {third}, {step}"


TOYS: dict[str, dict[str, Any]] = {
    toy_name(kernel, third, step): {"kernel": kernel, "third": third, "one_sided": False, **options}
    for third in THIRD
    for kernel, steps in STEPS.items()
    for step, options in steps.items()
}


def toy_points(third: str, one_sided: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the three subspaces, and the number of the subspace of each."""
    random = np.random.default_rng(seed)
    shared = np.eye(5)[2:]
    parts = []
    for first in ((1.0, 1.3, 0, 0, 0), (1.3, 1.0, 0, 0, 0), THIRD[third]):
        coefficients = random.standard_normal((POINTS, 4)) * SPREADS
        if one_sided:
            coefficients[:, 0] = np.abs(coefficients[:, 0])
        parts.append(coefficients @ np.vstack([first, shared]))
    return np.vstack(parts), np.repeat([0, 1, 2], POINTS)


def toy_kernel(name: str) -> Kernel:
    """Return the quadratic kernel, or the Gaussian with sigma^2 = 0.1."""
    return Polynomial(2) if name == "quadratic" else Gaussian(0.1**0.5)


def toy_iterates(settings: dict[str, Any], seed: int) -> tuple[list[dict[str, np.ndarray]], np.ndarray]:
    """Return points, kernel matrix and affinity of every iterate of Algorithm 1, and the labels."""
    X, labels = toy_points(settings["third"], settings["one_sided"], seed)
    kernel, relative = toy_kernel(settings["kernel"]), settings["relative"]
    learner = Precision(settings["shrinkage"], inversion=settings["inversion"], relative=relative)
    features, iterates = Features(unit_rows(torch.from_numpy(X))), []
    for _ in range(ITERATIONS + 1):
        K = kernel.matrix(features.rows)
        ridge = absolute_ridge(K, settings["ridge"], relative=relative)
        C = left_out_coefficients(regularized_inverse(K, ridge)).abs().numpy()
        iterates.append({"points": features.rows.numpy(), "kernel": K.numpy(), "affinity": C + C.T})
        (projection,) = learner.shaped(latent_covariance(kernel, features.rows, ridge, K=K))
        features = features.projected(projection)
    return iterates, labels


def run_toy(settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Return the shares of both matrices in the true blocks, and the geometry before and after ten iterations."""
    iterates, labels = toy_iterates(settings, seed)
    shares = {
        f"{name} {t}": block_mass(iterates[t][name], labels) for name in ("kernel", "affinity") for t in (0, 5, 8, 10)
    }
    return shares | before_and_after(iterates[0]["points"], iterates[-1]["points"], labels)
