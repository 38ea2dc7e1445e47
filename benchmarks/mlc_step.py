"""One step of MLC with batches of 512, d = 128, float32: loss and gradients by autograd, and in closed form."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks import Benchmark, RatioClaim
from mercer.losses import mlc
from mercer.sinkhorn import doubly_stochastic

# The parameters of appendix D.2.
EPSILON, GAMMA, ETA = math.sqrt(0.1), 0.05, 0.175
# This number of damped scalings brings the row sums within 1e-6 of 1 here, as our projection does.
SCALINGS = 20


class Heads(NamedTuple):
    """The outputs of the feature head and the cluster head, rows of length 1."""

    Z: Tensor
    C: Tensor


class Step(NamedTuple):
    loss: float
    dZ: Tensor
    dC: Tensor


def setup(quick: bool) -> Heads:
    """Return ten noisy clusters on subspaces of dimension 8; the outputs of the two heads differ a little."""
    n, d = (60, 16) if quick else (512, 128)
    random = torch.Generator().manual_seed(0)
    bases = torch.linalg.qr(torch.randn(10, d, 8, generator=random)).Q
    points = torch.randn(n, 8, generator=random)
    clean = torch.einsum("ir,idr->id", points, bases[torch.arange(n) % 10])

    def head() -> Tensor:
        noise = 0.3 * torch.randn(n, d, generator=random)
        return torch.nn.functional.normalize(clean + noise, dim=1)

    return Heads(head(), head())


def step(loss: Callable[[Tensor, Tensor], Tensor], heads: Heads) -> Step:
    Z, C = (head.clone().requires_grad_() for head in heads)
    value = loss(Z, C)
    dZ, dC = torch.autograd.grad(value, (Z, C))
    return Step(value.item(), dZ, dC)


def as_written(Z: Tensor, C: Tensor) -> Tensor:
    """Compute equation 4 with unrolled scalings, in the fastest of six ways to write it for autograd."""
    n, d = Z.shape
    K = C @ C.T / ETA
    f = torch.zeros(n)
    for _ in range(SCALINGS):
        f = (f - torch.logsumexp(K + f, dim=1)) / 2.0
    P = (K + f[:, None] + f).exp()
    one, c = torch.eye(d), d / EPSILON**2
    R = torch.logdet(one + c / n * Z.T @ Z)
    R_c = torch.logdet(one + c * torch.einsum("ia,ij,ib->jab", Z, P, Z)).mean()
    return R_c - R + GAMMA / 2.0 * P.square().sum()


def closed_form(Z: Tensor, C: Tensor) -> Tensor:
    return mlc(Z, doubly_stochastic(C @ C.T / ETA), epsilon=EPSILON, gamma=GAMMA)


def along_the_sphere(gradient: Tensor, rows: Tensor) -> Tensor:
    """Return the part of a gradient that keeps the length of rows, since `mlc` depends on the directions of Z alone."""
    return gradient - (gradient * rows).sum(dim=1, keepdim=True) * rows


def check(outputs: Mapping[str, Any]) -> None:
    expected, found = outputs["autograd"], outputs["closed form"]
    Z = setup(len(expected.dZ) < 100).Z
    pairs = {"dZ": (found.dZ, along_the_sphere(expected.dZ, Z)), "dC": (found.dC, expected.dC)}
    differences = {name: float((a - b).abs().max() / b.abs().max()) for name, (a, b) in pairs.items()}
    differences["loss"] = abs(found.loss / expected.loss - 1.0)
    for name, difference in differences.items():
        if not difference < 1e-4:
            raise AssertionError(f"{name} in closed form differs from autograd by {difference:.1e}")


BENCHMARK = Benchmark(
    "mlc_step",
    setup,
    {"autograd": lambda heads: step(as_written, heads), "closed form": lambda heads: step(closed_form, heads)},
    check=check,
    claims=[
        RatioClaim("an MLC step at least 1.8 x faster than autograd", "autograd", "closed form", 1.8),
        RatioClaim("and in no more memory", "autograd", "closed form", 1.0, of="memory"),
    ],
)
