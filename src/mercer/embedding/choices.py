"""How the ridge and the kernel of an embedding are chosen without labels: by the loss on left-out rows."""

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

# The ridges to choose from, as shares of the largest eigenvalue of the covariance.
RIDGES = tuple(float(10.0**power) for power in np.arange(-5.0, -0.9, 0.5))
# The subset of them that is tried for each kernel when kernels are compared.
RIDGES_OF_KERNELS = RIDGES[:5:2]
# Among the ridges whose gain (minus the loss on left-out rows) is within this share of the best gain, the largest is
# taken: a smoother embedding needs fewer labels.
TOLERANCE = 0.1

# Ridges are compared in this many directions for each component, counting at least this many components.
DIRECTIONS, LEAST_COMPONENTS = 2, 100


class Choice(NamedTuple):
    """The chosen ridge, the smallest loss on left-out rows, and a record of each ridge that was tried."""

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
    """Choose the ridge by two-fold cross-validation: minimize on one half of the rows, take the loss on the other.

    For "kernel_pca" the ridge with the smallest loss is taken. A contrastive loss is 0 for a constant embedding; for
    these losses the largest ridge that reaches nine tenths of the best gain is taken. There is nothing to choose for a
    loss without a ridge, or if one of the halves has no rows.

    Parameters
    ----------
    form : ClosedForm
        The loss.
    halves : Halves
    ridge : float or "auto"
        A number is returned as it is, with its loss on left-out rows.
    n_components : int
    kernel : Kernel
        The kernel whose bandwidth is recorded.
    shares : sequence of float
        The ridges to choose from in increasing order, as shares of the largest variance.
    """
    rows = [fold.n_rows for fold in halves.folds]
    if not form.has_ridge or min(rows) == 0:
        return Choice(0.0 if ridge == "auto" else float(ridge), float("nan"), [])
    each = halves.each()
    variances, directions = torch.linalg.eigh((each[0].second + each[1].second) / 2)
    top = float(variances[-1])
    if len(variances) > (most := DIRECTIONS * max(n_components, LEAST_COMPONENTS)):
        # Ridges are compared in the directions of largest variance only. In all directions, the eigenproblems of two
        # halves at nine ridges would take longer than the rest of the fit.
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
    """Return the index of the last loss that reaches nine tenths of the best gain; ridges are in increasing order."""
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
    """Return the kernel with the smallest loss on left-out rows, and a record of every kernel and ridge that was tried.

    The loss must be a function of the embeddings alone: only then can losses of different kernels be compared.
    """
    choices = []
    # Views are drawn once for all kernels: for color images this takes as long as computing the kernel values.
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
    """Whether the kernel has exactly one bandwidth, and it is "median" rather than a number."""
    leaves = [leaf for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return len(leaves) == 1 and leaves[0].bandwidth == "median"


def bandwidth_of(kernel: Kernel) -> float | None:
    """Return the bandwidth of the kernel, or the smallest if it has several; None if it has none."""
    scales = [leaf.scale() for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return float(min(scales)) if scales else None
