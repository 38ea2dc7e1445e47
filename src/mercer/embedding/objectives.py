"""The losses of `KernelEmbedding` that have an exact optimum, with the functions that minimize and compute each."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mercer.embedding.closed_forms import (
    Optimum,
    kernel_pca_loss,
    kernel_pca_optima,
    simple_contrastive_loss,
    simple_contrastive_optima,
    spectral_contrastive_loss,
    spectral_contrastive_optima,
)
from mercer.embedding.moments import Statistics

Optima = Callable[[Statistics, Sequence[float], int], Iterator[Optimum]]


class ClosedForm(NamedTuple):
    """A loss with an exact optimum.

    Attributes
    ----------
    optima : callable
        (statistics, ridges, n_components) -> the optimum at each ridge.
    loss : callable
        (statistics, W, bias) -> the loss of f = W^T z + bias, without the penalty.
    n_views : int
        The smallest number of views of a row.
    has_ridge : bool
        Whether the optimum depends on the ridge.
    constant : float or None
        The eigenvalue of the constant component that is added for a learned bias. None adds no component: the best bias
        is then that of the centered rows, or the loss does not depend on the bias.
    """

    optima: Optima
    loss: Callable[..., float]
    n_views: int
    has_ridge: bool
    constant: float | None = None


CLOSED_FORMS = ("spectral_contrastive", "simple_contrastive", "kernel_pca")


def closed_form(loss: str, regularizer: str = "covariance") -> ClosedForm:
    """Return the closed form of a loss with a regularizer."""
    spectral = partial(spectral_contrastive_optima, regularizer=regularizer)
    return {
        "spectral_contrastive": ClosedForm(spectral, spectral_contrastive_loss, 2, True, 1.0),
        "simple_contrastive": ClosedForm(simple_contrastive_optima, simple_contrastive_loss, 2, False),
        "kernel_pca": ClosedForm(kernel_pca_optima, kernel_pca_loss, 1, True),
    }[loss]


def held_out_losses(
    form: ClosedForm, halves: tuple[Statistics, Statistics], ridges: Sequence[float], n_components: int
) -> list[float]:
    """Return the loss for each ridge: the optimum on each half of the rows is evaluated on the other, then averaged."""
    losses = [0.0] * len(ridges)
    for seen, unseen in (halves, halves[::-1]):
        for i, optimum in enumerate(form.optima(seen, ridges, n_components)):
            losses[i] += 0.5 * form.loss(unseen, optimum.W)
    return losses
