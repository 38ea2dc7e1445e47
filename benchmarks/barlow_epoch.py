"""An epoch of Barlow Twins on 60 000 rows and 1000 features in batches of 1024, compared with its matrix products."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks import Benchmark, RatioClaim
from mercer.embedding.coordinates import features_at_hand
from mercer.embedding.trained_map import LinearMap
from mercer.losses import FromEmbeddings, barlow_twins
from mercer.training import Recipe, train


class Problem(NamedTuple):
    """Features of two views of n rows, of shape (n, r) each, the initial W of shape (r, h), and the batch size."""

    views: list[Tensor]
    W: Tensor
    batch_size: int


def setup(quick: bool) -> Problem:
    """Return views that differ only by noise, in float32."""
    n, r, h, b = (2000, 50, 10, 256) if quick else (60_000, 1000, 150, 1024)
    generator = torch.Generator().manual_seed(0)
    first = torch.randn((n, r), generator=generator)
    # In place, so that the features of all rows are in memory once, as in a fit.
    second = torch.randn((n, r), generator=generator).mul_(0.3).add_(first)
    return Problem([first, second], torch.randn((r, h), generator=generator) / r**0.5, b)


def epoch(problem: Problem) -> tuple[Problem, Tensor]:
    """Run an epoch of the trainer: batches without replacement, loss and gradient, Adam, and the check for NaN."""
    model, objective = LinearMap(problem.W), FromEmbeddings(barlow_twins)
    features = features_at_hand(problem.views)
    train(
        model,
        lambda rows, generator: objective(model, features(rows, generator), generator),
        len(problem.views[0]),
        Recipe(n_epochs=1, batch_size=problem.batch_size, learning_rate=1e-3, keep="last"),
        seed=0,
    )
    return problem, model.W.detach()


def products(problem: Problem) -> Tensor:
    """Compute the matrix products that every epoch needs: embeddings, correlations, and both in the gradient."""
    views, W, b = problem
    A, B = (W.new_empty((b, W.shape[1])) for _ in range(2))
    C, G = W.new_empty((W.shape[1], W.shape[1])), torch.empty_like(W)
    for start in range(0, len(views[0]) - b + 1, b):
        X, Y = (view[start : start + b] for view in views)
        torch.mm(X, W, out=A)
        torch.mm(Y, W, out=B)
        torch.mm(A.T, B, out=C)
        torch.mm(X.T, B @ C.T, out=G)
        torch.addmm(G, Y.T, A @ C, out=G)
    return G


def check(outputs: Mapping[str, Any]) -> None:
    """Raise unless an epoch lowers the loss."""
    problem, W = outputs["epoch"]
    some = [view[: problem.batch_size] for view in problem.views]
    before, after = (float(barlow_twins(*(view @ V for view in some))) for V in (problem.W, W))
    if not after < before:
        raise AssertionError(f"an epoch takes the loss from {before:.3g} to {after:.3g}")


BENCHMARK = Benchmark(
    "barlow_epoch",
    setup,
    {"epoch": epoch, "products": products},
    check=check,
    claims=[RatioClaim("an epoch takes at most twice the time of its products", "products", "epoch", 0.5)],
)
