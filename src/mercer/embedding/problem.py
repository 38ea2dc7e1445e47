"""What a solver is given and what it gives back: the values that pass between `KernelEmbedding.fit` and the solvers."""

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
# λ where views are noise, as a share of the largest variance.
NOISE_RIDGE = 0.1


class Halves(NamedTuple):
    """The moments of a kernel's values with landmarks, of two halves of the rows, and the coordinates to use them in.

    Attributes
    ----------
    folds : sequence of two Moments
    B : tensor of shape (m, r)
        B^T K_mm B = I.
    origin : tensor of shape (m,) or None
        What is taken from the kernel's values: their mean, or nothing.
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
    """Minimize a loss over f(x) = W^T z + γ, z = B^T (k(x) - origin) (krepes, equation 1 on landmarks).

    Attributes
    ----------
    loss : str, callable or Objective
    centers : Centers
    halves : Halves
        Sums over all rows, and B and the origin.
    source : DrawnViews or GivenViews
    n_components : int
        h.
    ridge : float or "auto"
    bias : {"centered", "learned", "none"}
        How γ is found; z is centered unless it is "none".
    seed : int
    share : float or None
        λ where `ridge` is "auto" and an exact optimum asks for one, as a share of the largest variance: that of tables
        whose views are noise, or the one that was chosen with the kernel. None chooses by the loss on rows left out.
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
    """What a solver found.

    Attributes
    ----------
    W : tensor of shape (r, h)
    bias : tensor of shape (h,)
        γ, of z: 0 for embeddings that are centered.
    eigenvalues : tensor of shape (h,)
        What ranks the components.
    ridge : float
    loss : float
    history : list of dict
    decoder : Decoder or None
        How rows are had back, where the loss asks for it.
    """

    W: Tensor
    bias: Tensor
    eigenvalues: Tensor
    ridge: float
    loss: float
    history: list[dict[str, Any]]
    decoder: Any = None


def check_width(solution: Solution, n_landmarks: int, n_components: int | None) -> None:
    """Raise if no component is left, and warn if there are fewer than were asked for."""
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
    """Return the moments with the coordinates in which the landmarks are white."""
    # Eigenvalues below 1e-7 of the largest, about the root of the rounding error, have no digits left in products.
    B = principal_coefficients(centers.gram(), precision=torch.float32)
    if B.shape[1] == 0:
        raise ValueError("the kernel matrix of the landmarks is zero: X has no row with k(x, x) above 0.")
    return Halves(folds, B, None if bias == "none" else folds[0].plus(folds[1]).mean)
