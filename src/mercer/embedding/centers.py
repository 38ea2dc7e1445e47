"""The landmarks that views are compared with: one set for all views, or one set for each (krepes, section 3)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel

TUPLES = ("shared", "by_view", "all")


class Centers(NamedTuple):
    """A kernel and the m landmarks of each view: k_j(x) holds the kernel values between x and the landmarks of view j.

    Attributes
    ----------
    kernel : Kernel
    sets : sequence of tensors of shape (m, d)
        One set that all views share; or one set for each view, as in the paper's Z_A = K_A A and Z_B = K_B A.
    """

    kernel: Kernel
    sets: Sequence[Tensor]

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of the landmarks."""
        return self.sets[0]

    def gram(self) -> Tensor:
        """Return K_mm, of shape (m, m) in float64.

        If there are several sets, they share the coefficients A, and new rows are embedded by the mean of the k_j. The
        squared norm of that function is Tr(A^T K_mm A), where K_mm is the mean of the kernel matrices of all pairs of
        sets. It is computed in float64 even if the rows are float32, since the inverse root amplifies the rounding
        errors of small eigenvalues.
        """
        sets = [Z.to(torch.float64) for Z in self.sets]
        return sum((self.kernel.matrix(a, b) for a in sets for b in sets), torch.zeros(())) / len(sets) ** 2

    def values(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return the function views -> their kernel values k_j, of shape (n, m) each.

        What depends on the landmarks alone is computed once, here. If there are several sets but a single view, its
        values are the means over the sets.
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
    """Return the centers for a value of `landmark_tuples`; a tuple holds the p views of one landmark row.

    Parameters
    ----------
    kernel : Kernel
    landmarks : tensor of shape (m, d)
        The landmark rows; used for "shared".
    stacked : ndarray of shape (p m', d) or None
        The views of m' landmark rows: the first view of all of them, then the second, and so on. Used for "by_view",
        where each view has a set of its own, and for "all", where all of them form one set.
    tuples : {"shared", "by_view", "all"}
    n_views : int
        p.
    """
    if stacked is None or tuples == "shared":
        return Centers(kernel, [landmarks])
    elements = torch.from_numpy(stacked).to(landmarks)
    return Centers(kernel, [elements] if tuples == "all" else list(elements.chunk(n_views)))
