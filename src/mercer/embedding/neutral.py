"""A criterion that is none of the losses, by which a start and what steps made of it are compared."""

from collections.abc import Sequence

from torch import Tensor


def neutral_loss(views: Sequence[Tensor]) -> float:
    """Return a number that is smaller for better embeddings of the views of rows left out."""
    return 0.0
