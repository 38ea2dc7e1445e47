"""Means over pairs of views, as sums over views: the pairs are never walked through."""

from collections.abc import Sequence

from torch import Tensor


def check_views(views: Sequence[Tensor], at_least: int = 2) -> None:
    """Raise unless there are enough views, all of one shape (n, h)."""
    shapes = [tuple(view.shape) for view in views]
    if len(views) < at_least or len(set(shapes)) != 1 or views[0].ndim != 2:
        raise ValueError(f"the views have shapes {shapes}: {at_least} or more of one shape (n, h) are needed.")


def mean_positive_product(views: Sequence[Tensor]) -> Tensor:
    """Return the mean of f(x)^T f(x+) over samples and ordered pairs of different views of a sample.

    With t = sum_j f_j the pairs sum to t^T t - sum_j f_j^T f_j.
    """
    p, n = len(views), len(views[0])
    total = sum(views[1:], start=views[0])
    own = sum((view.square().sum() for view in views[1:]), start=views[0].square().sum())
    return (total.square().sum() - own) / (n * p * (p - 1))
