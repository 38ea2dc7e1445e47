"""Means over views and over pairs of views, computed from sums over views without a loop over the pairs."""

from collections.abc import Sequence

import torch
from torch import Tensor


def check_views(views: Sequence[Tensor], at_least: int = 2, min_rows: int = 1) -> None:
    """Raise an error unless there are enough views, all of one shape (n, h), with enough rows."""
    shapes = [tuple(view.shape) for view in views]
    if len(views) < at_least or len(set(shapes)) != 1 or views[0].ndim != 2:
        raise ValueError(f"the views have shapes {shapes}: {at_least} or more of one shape (n, h) are needed.")
    if len(views[0]) < min_rows:
        raise ValueError(
            f"the views have shapes {shapes}: the loss compares samples with each other, so that n must be at least "
            f"{min_rows}."
        )


def mean_positive_product(views: Sequence[Tensor]) -> Tensor:
    """Return the mean of f(x)^T f(x+) over samples and ordered pairs of different views of a sample.

    With t = sum_j f_j, the sum over the pairs of a sample is t^T t - sum_j f_j^T f_j.
    """
    p, n = len(views), len(views[0])
    total = sum(views[1:], start=views[0])
    own = sum((view.square().sum() for view in views[1:]), start=views[0].square().sum())
    return (total.square().sum() - own) / (n * p * (p - 1))


def second_moment(views: Sequence[Tensor]) -> Tensor:
    """Return E[f(x) f(x)^T] over all views of all samples, of shape (h, h)."""
    total = sum((view.T @ view for view in views[1:]), start=views[0].T @ views[0])
    return total / (len(views) * len(views[0]))


def negative_products(views: Sequence[Tensor], negatives: Tensor) -> Tensor:
    """Return f(x)^T f(x-) for every view x of every sample, of shape (p, n), where x- is the sample's negative."""
    if negatives.shape != views[0].shape:
        raise ValueError(
            f"negatives has shape {tuple(negatives.shape)}: it must be that of a view, {tuple(views[0].shape)}, with "
            "the embedding of x- for each row."
        )
    return (torch.stack(list(views)) * negatives).sum(dim=2)
