"""The landmarks that views are compared with: one set for all views, or one set for each (krepes, section 3)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel

TUPLES = ("shared", "by_view", "all")


class Centers(NamedTuple):
    """A kernel and the m landmarks of each view: k_j(x) holds the kernel's values between x and those of view j.

    Attributes
    ----------
    kernel : Kernel
    sets : sequence of tensors of shape (m, d)
        One, which all views share; or one for each view, as the paper has Z_A = K_A A and Z_B = K_B A.
    """

    kernel: Kernel
    sets: Sequence[Tensor]

    @property
    def like(self) -> Tensor:
        """A tensor of the type of the landmarks, where they are."""
        return self.sets[0]

    def gram(self) -> Tensor:
        """Return K_mm, of shape (m, m) in float64.

        Sets of several views share the coefficients, so that rows that are no view of either kind are embedded by the
        mean of k_j: the norm of that function is Tr(A^T K_mm A) with the mean over all pairs of sets.

        Small eigenvalues are what the inverse root amplifies, so K_mm has all digits whatever the rows have.
        """
        sets = [Z.to(torch.float64) for Z in self.sets]
        return sum((self.kernel.matrix(a, b) for a in sets for b in sets), torch.zeros(())) / len(sets) ** 2

    def values(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return views -> the values k_j of each, of shape (n, m), with what depends on landmarks alone done once.

        Rows that come as one view, where there are several sets, get the mean over the sets.
        """
        kernel, prepared = self.kernel, [self.kernel.prepare(Z) for Z in self.sets]

        def compared(x: Tensor, j: int) -> Tensor:
            return kernel.values(kernel.prepare(x.to(self.like), beside=prepared[j]), prepared[j])

        def features(views: Sequence[Tensor]) -> list[Tensor]:
            if len(prepared) == 1:
                return [compared(x, 0) for x in views]
            if len(views) == 1:
                each = [compared(views[0], j) for j in range(len(prepared))]
                return [torch.stack(each).mean(dim=0)]
            return [compared(x, j) for j, x in enumerate(views)]

        return features


def centers_of(kernel: Kernel, landmarks: Tensor, stacked: np.ndarray | None, tuples: str, n_views: int) -> Centers:
    """Return the centers of an expansion over `shared` landmarks, those `by_view`, or `all` elements of the tuples.

    Parameters
    ----------
    kernel : Kernel
    landmarks : tensor of shape (m, d)
        For "shared".
    stacked : ndarray of shape (p m', d) or None
        For the others: the views of m' landmarks, those of one kind after those of another.
    tuples : {"shared", "by_view", "all"}
    n_views : int
        p.
    """
    if stacked is None or tuples == "shared":
        return Centers(kernel, [landmarks])
    elements = torch.from_numpy(stacked).to(landmarks)
    return Centers(kernel, [elements] if tuples == "all" else list(elements.chunk(n_views)))
