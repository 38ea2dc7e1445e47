"""Passes over blocks of rows for discriminants on landmarks, so that K_nm is never held in memory as a whole."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import Reused, as_tensor, rows_per_block
from mercer.discriminant.groups import Discriminants, Groups, double_centered
from mercer.discriminant.landmark_directions import LandmarkBasis, landmark_basis, landmark_discriminants
from mercer.discriminant.left_out import effective_ridges, left_out_values
from mercer.kernels import Kernel
from mercer.kernels.base import TEMPORARIES, block_numbers
from mercer.linalg import gram
from mercer.rows import map_over_rows, sum_over_rows

# Bytes of a number in products and sums over rows, which are float64.
PRODUCT_BYTES = 8


class LandmarkRows:
    """The kernel values k_i = (k(x_i, z_1), ..., k(x_i, z_m)) of rows x_i and m landmarks z.

    Parameters
    ----------
    X : ndarray or Rows of shape (n, d)
    landmarks : ndarray of shape (m, d)
    kernel : Kernel
    center : bool
        Whether the values of each row are centered over the landmarks.
    working_memory : float
        Memory for the temporary arrays of one block of rows, in MiB.
    device : torch.device, str or None
    """

    def __init__(
        self, X: Any, landmarks: np.ndarray, kernel: Kernel, center: bool, working_memory: float, device: Any
    ) -> None:
        self.X = X
        self.landmarks = landmarks
        self.kernel = kernel
        self.center = center
        # Matrices of shape (m, m) are held anyway, and products with them are efficient for blocks of about m rows.
        self.working_memory = max(working_memory, len(landmarks) ** 2 * X.dtype.itemsize * (TEMPORARIES + 2) / 2**20)
        self.device = device

    def of(self, X: np.ndarray) -> "LandmarkRows":
        """Return the same landmarks and options with other rows."""
        return LandmarkRows(X, self.landmarks, self.kernel, self.center, self.working_memory, self.device)

    def regularizer(self, name: str) -> Tensor | None:
        """Return R: None for the identity; for the RKHS norm K_mm, which is double-centered if `center`."""
        if name == "identity":
            return None
        K_mm = self.kernel.matrix(as_tensor(self.landmarks, dtype=torch.float64, device=self.device))
        return double_centered(K_mm) if self.center else K_mm

    def basis(self, groups: Groups, regularizer: str, labels: Any = None) -> LandmarkBasis:
        """Return the coordinates of functions of the landmarks, from one pass over the rows; `labels` as for `sums`."""
        # In directions of K_mm with a smaller share of its spectrum, a rounding error eps of each value dominates.
        rounding = torch.finfo(self._z().dtype).eps / len(self.landmarks) ** 0.5
        return landmark_basis(*self.sums(groups, labels), groups.counts, self.regularizer(regularizer), rounding)

    def sums(self, groups: Groups, labels: Any = None) -> tuple[Tensor, Tensor]:
        """Return sum_i k_i k_i^T of shape (m, m) and the sum of k_i in each class, of shape (c, m).

        `labels` are the classes of the rows if they come from files or workers together with the rows. By default, they
        are those of `groups`. O(n m (d + m)).
        """
        z = self._z()
        total, sums = sum_over_rows(
            class_sums,
            (self.kernel, z, self.center, len(groups.counts)),
            self.X,
            groups.of_row if labels is None else labels,
            rows_a_block=self._rows_a_block(z),
            dtype=z.dtype,
            device=self.device,
        )
        return total, sums

    def _z(self) -> Tensor:
        """Return the landmarks in the precision of the rows."""
        return as_tensor(self.landmarks, dtype=as_tensor(self.X[:0]).dtype, device=self.device)

    def _rows_a_block(self, z: Tensor) -> int:
        bytes_per_row = block_numbers(*z.shape) * z.element_size() + 2 * len(z) * PRODUCT_BYTES
        return rows_per_block(self.X.shape[0], bytes_per_row, self.working_memory)

    def discriminants(
        self, basis: LandmarkBasis, groups: Groups, ridges: Sequence[float], n_components: int
    ) -> list[Discriminants]:
        """Return the discriminants for each ridge, with their values and leave-one-out values on these rows.

        One pass over the rows is enough for all ridges. The basis may have been computed from more rows, but these rows
        must be among them. With the coordinates F of the rows in the basis, the smoother is
        H = F diag(1 / (spread + ridge)) F^T.
        """
        solved = [landmark_discriminants(basis, ridge, n_components) for ridge in ridges]
        widths = [beta.shape[1] for beta, _ in solved]
        betas = torch.cat([beta for beta, _ in solved], dim=1)
        # Leverages are needed at each ridge itself, and at the effective ridge of each component.
        at = [
            torch.cat([mu.new_full((1,), r), effective_ridges(r, mu)])
            for r, (_, mu) in zip(ridges, solved, strict=True)
        ]
        inverses = 1.0 / (basis.spread[:, None] + torch.cat(at))
        z = self._z()
        parts = map_over_rows(
            values_and_leverages,
            (self.kernel, z, self.center, basis.V, basis.mean, betas, inverses),
            self.X,
            rows_a_block=self._rows_a_block(z),
            dtype=z.dtype,
            device=self.device,
        )
        U, leverages = (torch.from_numpy(part).to(self.device) for part in parts)
        values, seen = U.split(widths, dim=1), leverages.split([width + 1 for width in widths], dim=1)
        share = 1.0 / float(basis.counts.sum())
        found = []
        for (beta, mu), u, h in zip(solved, values, seen, strict=True):
            of_class = (basis.group_means @ beta)[groups.of_row]
            left_out = left_out_values(u, mu, of_class, torch.zeros_like(mu), h[:, 0], h[:, 1:], share)
            found.append(Discriminants(basis.V @ beta, u, mu, left_out))
        return found


def landmark_values(kernel: Kernel, z: Tensor, center: bool) -> Callable[[Tensor], Tensor]:
    """Return the function from a block of rows to their kernel values k, whose result the next block overwrites."""
    prepared, of_kernel, of_values = kernel.prepare(z), Reused(), Reused()

    def values(x: Tensor) -> Tensor:
        k = kernel.values(kernel.prepare(x, beside=prepared), prepared, of_kernel(x, len(x), len(z)))
        if not center:
            return k
        # Not in place: a kernel that is a function of the user may have returned an array that it keeps.
        return torch.sub(k, k.mean(dim=1, keepdim=True), out=of_values(k, len(x), len(z)))

    return values


def class_sums(
    kernel: Kernel, z: Tensor, center: bool, n_classes: int
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the function from a block of rows and their classes to sum_i k_i k_i^T and the sum of k_i in each class.

    The kernel values of float32 rows are float32, but products are float64. Products are later divided by the smallest
    eigenvalues of K_mm, where their rounding errors would dominate. The rounding errors of the values average out.
    """
    values = landmark_values(kernel, z, center)

    def sums(x: Tensor, of_row: Tensor) -> tuple[Tensor, Tensor]:
        k = values(x).to(torch.float64)
        # A product with indicators takes a tenth of the time of adding the rows to their classes one by one.
        return gram(k), torch.nn.functional.one_hot(of_row, n_classes).to(k).T @ k

    return sums


def values_and_leverages(
    kernel: Kernel, z: Tensor, center: bool, V: Tensor, mean: Tensor, betas: Tensor, inverses: Tensor
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the function from a block of rows with coordinates F = (k - mean) V to F betas and F^2 inverses."""
    values = landmark_values(kernel, z, center)

    def of_rows(x: Tensor) -> tuple[Tensor, Tensor]:
        F = (values(x).to(torch.float64) - mean) @ V
        return F @ betas, F.square_() @ inverses

    return of_rows
