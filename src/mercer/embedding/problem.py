"""The values that pass between `KernelEmbedding.fit` and the solvers: the problem and its solution."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.embedding.centers import Centers
from mercer.embedding.moments import Moments, Statistics, no_moments, statistics
from mercer.exceptions import DataWarning, warn_user
from mercer.landmarks.features import principal_coefficients
from mercer.views.sources import ViewSource

BIASES = ("centered", "learned", "none")
# λ for views that are only noise, as a share of the largest variance.
NOISE_RIDGE = 0.1


class Halves(NamedTuple):
    """The moments of the kernel values with the landmarks, for two halves of the rows, and the coordinates for them.

    Attributes
    ----------
    folds : sequence of two Moments
    B : tensor of shape (m, r)
        The matrix that whitens the landmarks: B^T K_mm B = I.
    origin : tensor of shape (m,) or None
        The mean of the kernel values, which is subtracted from them; None if they are not centered.
    """

    folds: Sequence[Moments]
    B: Tensor
    origin: Tensor | None

    def all_rows(self) -> Statistics:
        """Return the statistics of all rows."""
        return statistics(self.folds[0].plus(self.folds[1]), self.B, self.origin)

    def each(self) -> tuple[Statistics, Statistics]:
        """Return the statistics of each half."""
        return statistics(self.folds[0], self.B, self.origin), statistics(self.folds[1], self.B, self.origin)


class Problem(NamedTuple):
    """Minimize a loss over f(x) = W^T z + γ with z = B^T (k(x) - origin) (krepes, equation 1 on landmarks).

    Attributes
    ----------
    loss : str, callable or Objective
    centers : Centers
        The kernel and the landmarks.
    halves : Halves
        The moments of all rows, with B and the origin.
    source : DrawnViews or GivenViews
        The rows and their views.
    n_components : int
        h.
    ridge : float or "auto"
        λ.
    bias : {"centered", "learned", "none"}
        How γ is determined; z is centered unless it is "none".
    seed : int
    share : float or None
        λ as a share of the largest variance, for exact optima with `ridge="auto"` whose views are only noise. None
        chooses λ by the loss on left-out rows.
    """

    loss: Any
    centers: Centers
    halves: Halves
    source: ViewSource
    n_components: int
    ridge: Any
    bias: str
    seed: int
    share: float | None


class Solution(NamedTuple):
    """The embedding f(x) = W^T z + γ that a solver found.

    Attributes
    ----------
    W : tensor of shape (r, h)
    bias : tensor of shape (h,)
        γ for features z; it is 0 if embeddings are centered.
    eigenvalues : tensor of shape (h,)
        The values by which the components are ranked.
    ridge : float
        The λ that was used.
    loss : float
        The loss that was reached.
    history : list of dict
        A record of each setting, epoch or round.
    decoder : Decoder or None
        The decoder, for the loss of the kernel autoencoder.
    """

    W: Tensor
    bias: Tensor
    eigenvalues: Tensor
    ridge: float
    loss: float
    history: list[dict[str, Any]]
    decoder: Any = None


def check_width(solution: Solution, n_landmarks: int, n_components: int | None) -> None:
    """Raise if the solution has no component, and warn if it has fewer than were asked for."""
    width = solution.W.shape[1]
    if width == 0:
        raise ValueError(
            f"nothing is left to embed: with ridge={solution.ridge:g} no direction of the {n_landmarks} landmarks is "
            "worth its penalty. Rows that differ, a smaller ridge, or views that differ less will help."
        )
    if n_components is not None and width < n_components:
        warn_user(
            f"n_components={n_components}, but only {width} directions lower the loss: {width} components are kept.",
            DataWarning,
        )


def no_rows(centers: Centers) -> list[Moments]:
    """Return the moments of two halves without rows."""
    return [no_moments(centers.like), no_moments(centers.like)]


def halves_of(centers: Centers, folds: Sequence[Moments], bias: str) -> Halves:
    """Return the moments of both folds with the coordinates in which the landmarks are white."""
    # Directions with eigenvalues below 1e-7 of the largest are left out. This is about the square root of the rounding
    # error of float64, so that products of such values have no correct digits.
    B = principal_coefficients(centers.gram(), precision=torch.float32)
    if B.shape[1] == 0:
        raise ValueError("the kernel matrix of the landmarks is zero: X has no row with k(x, x) above 0.")
    return Halves(folds, B, None if bias == "none" else folds[0].plus(folds[1]).mean)
