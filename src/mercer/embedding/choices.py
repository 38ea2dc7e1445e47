"""Choices of an embedding that are made without labels: by the loss on rows that were left out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from mercer.embedding.centers import Centers
from mercer.embedding.moments import add_views
from mercer.embedding.objectives import ClosedForm, held_out_losses
from mercer.embedding.problem import Halves, halves_of, no_rows
from mercer.kernels import Kernel
from mercer.kernels.radial import BandwidthKernel
from mercer.linalg import threads_for
from mercer.views.sources import GivenViews, ViewSource

# Shares of the largest eigenvalue of the covariance that a ridge is chosen from.
RIDGES = tuple(float(10.0**power) for power in np.arange(-5.0, -0.9, 0.5))
# Of these the ones that kernels are compared with.
RIDGES_OF_KERNELS = RIDGES[:5:2]
# Of ridges whose gains (minus the loss left out) are within this share of the best, the largest is taken: a smoother
# embedding needs fewer labels.
TOLERANCE = 0.1

# How many directions ridges are compared in, as a multiple of the number of components, or of so many at least.
DIRECTIONS, LEAST_COMPONENTS = 2, 100


class Choice(NamedTuple):
    """A ridge, its loss on rows left out, and what was tried."""

    ridge: float
    loss: float
    tried: list[dict[str, Any]]


def choose_ridge(
    form: ClosedForm,
    halves: Halves,
    ridge: Any,
    n_components: int,
    kernel: Kernel,
    shares: Sequence[float] = RIDGES,
) -> Choice:
    """Return the ridge under which the optimum on each half has about the smallest loss on the other; or the one given.

    Of contrastive losses, which are 0 for an embedding that says nothing, the largest ridge with nine tenths of the
    best gain is taken. A loss without a ridge, and a single row, leave nothing to choose.
    """
    rows = [fold.n_rows for fold in halves.folds]
    if not form.has_ridge or min(rows) == 0:
        return Choice(0.0 if ridge == "auto" else float(ridge), float("nan"), [])
    each = halves.each()
    variances, directions = torch.linalg.eigh((each[0].second + each[1].second) / 2)
    top = float(variances[-1])
    if len(variances) > (most := DIRECTIONS * max(n_components, LEAST_COMPONENTS)):
        # Ridges are compared in the directions of largest variance: in all of them the eigenproblems of two halves at
        # nine ridges would take longer than all else in a fit.
        each = each[0].along(directions[:, -most:]), each[1].along(directions[:, -most:])
    ridges = [share * top for share in shares] if ridge == "auto" else [float(ridge)]
    losses = held_out_losses(form, each, ridges, n_components)
    tried = [
        {"bandwidth": bandwidth_of(kernel), "ridge": tried, "held_out_loss": loss, "rows": sum(rows)}
        for tried, loss in zip(ridges, losses, strict=True)
    ]
    best = int(np.argmin(losses))
    chosen = largest_near_best(losses) if form.n_views > 1 else best
    return Choice(ridges[chosen], losses[best], tried)


def largest_near_best(losses: Sequence[float]) -> int:
    """Return the place of the last loss with nine tenths of the best gain; ridges come in rising order."""
    least = min(losses)
    return max(i for i, loss in enumerate(losses) if loss <= least + TOLERANCE * abs(least))


def choose_kernel(
    kernels: Sequence[Kernel],
    form: ClosedForm,
    source: ViewSource,
    centers: Centers,
    *,
    ridge: Any,
    n_components: int,
    bias: str,
    seed: int,
) -> tuple[Kernel, list[dict[str, Any]]]:
    """Return the kernel with the smallest loss on rows left out, each at its best ridge; and what was tried.

    Losses of different kernels compare where they are functions of the embeddings alone.
    """
    choices = []
    # Views are drawn once for all kernels: of color images they take as long as the kernel's values.
    source = GivenViews([torch.cat(view).cpu().numpy() for view in zip(*source.chunks(centers.like), strict=True)])
    for kernel in kernels:
        tried = centers._replace(kernel=kernel)
        folds = add_views(no_rows(tried), tried, source, seed)
        with threads_for(len(tried.like)):
            halves = halves_of(tried, folds, bias)
            width = min(n_components, halves.B.shape[1])
            choices.append(choose_ridge(form, halves, ridge, width, kernel, RIDGES_OF_KERNELS))
    losses = [choice.loss for choice in choices]
    best = 0 if np.isnan(losses).all() else int(np.nanargmin(losses))
    return kernels[best], [entry for choice in choices for entry in choice.tried]


def is_free(kernel: Kernel) -> bool:
    """Whether the kernel has one bandwidth, which is no number yet."""
    leaves = [leaf for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return len(leaves) == 1 and leaves[0].bandwidth == "median"


def bandwidth_of(kernel: Kernel) -> float | None:
    """Return the kernel's bandwidth, the smallest if it has several; None if it has none."""
    scales = [leaf.scale() for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return float(min(scales)) if scales else None
