"""Passes over the rows for discriminants of landmark functions: sums, ridges compared, values; K_nm is never whole."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor, walk
from mercer.discriminant.directions import Groups, LandmarkBasis, double_centred
from mercer.kernels import Kernel
from mercer.kernels.base import TEMPORARIES, block_numbers


class LandmarkRows:
    """The rows seen through m landmarks: k_i = (k(x_i, z_1), ..., k(x_i, z_m)), centred over the landmarks if asked.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    landmarks : ndarray of shape (m, d)
    kernel : Kernel
    center : bool
    working_memory : float
    device : torch.device, str or None
    """

    def __init__(
        self, X: np.ndarray, landmarks: np.ndarray, kernel: Kernel, center: bool, working_memory: float, device: Any
    ) -> None:
        self.X = X
        self.landmarks = landmarks
        self.kernel = kernel
        self.center = center
        # (m, m) matrices are held anyway; blocks of about m rows make the products with them efficient.
        self.working_memory = max(working_memory, len(landmarks) ** 2 * X.itemsize * (TEMPORARIES + 2) / 2**20)
        self.device = device

    def regularizer(self, name: str) -> Tensor | None:
        """Return R: None for the identity; K_mm, double-centred if the rows are, for the RKHS norm."""
        if name == "identity":
            return None
        K_mm = self.kernel.matrix(as_tensor(self.landmarks, dtype=torch.float64, device=self.device))
        return double_centred(K_mm) if self.center else K_mm

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield slices of rows and their k, in the precision of X."""
        dtype = as_tensor(self.X[:0]).dtype
        z = as_tensor(self.landmarks, dtype=dtype, device=self.device)
        prepared = self.kernel.prepare(z)
        bytes_per_row = (block_numbers(*z.shape) + 2 * len(z)) * z.element_size()
        for rows, (x,) in walk(
            [self.X], bytes_per_row=bytes_per_row, working_memory=self.working_memory, dtype=dtype, device=self.device
        ):
            k = self.kernel.values(self.kernel.prepare(x, beside=prepared), prepared)
            yield rows, k - k.mean(dim=1, keepdim=True) if self.center else k

    def sums(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return sum_i k_i k_i^T of shape (m, m) and the sum of k_i in each class, of shape (c, m)."""
        m = len(self.landmarks)
        total = torch.zeros((m, m), dtype=torch.float64, device=self.device)
        sums = torch.zeros((len(groups.counts), m), dtype=torch.float64, device=self.device)
        for rows, k in self.blocks():
            total += k.T @ k
            sums.index_add_(0, groups.of_row[rows], k.to(torch.float64))
        return total, sums

    def coordinates(self, basis: LandmarkBasis) -> Iterator[tuple[slice, Tensor]]:
        """Yield slices of rows and their coordinates V^T (k - mean), of shape (rows, r)."""
        V = mean = None
        for rows, k in self.blocks():
            if V is None or mean is None:
                V, mean = basis.V.to(k.dtype), basis.mean.to(k.dtype)
            yield rows, (k - mean) @ V

    def compare(self, basis: LandmarkBasis, groups: Groups, ridges: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Return the mean squared leave-one-out error of the class indicators for each ridge, and all leverages H_ii.

        In the basis the regression is f = F diag(1 / (spread + ridge)) F^T Y, so one pass serves all ridges.

        Returns
        -------
        errors : tensor of shape (len(ridges),)
        leverages : tensor of shape (n, len(ridges))
        """
        n = len(self.X)
        inverses = 1.0 / (basis.spread[:, None] + torch.as_tensor(ridges, dtype=torch.float64, device=self.device))
        # F^T Y for centred indicators Y: the class means times their counts.
        targets = (groups.counts[:, None] * basis.group_means).T
        coefficients = (inverses[:, :, None] * targets[:, None, :]).flatten(1)
        shares = groups.counts / n
        errors = torch.zeros(len(ridges), dtype=torch.float64, device=self.device)
        leverages = torch.empty((n, len(ridges)), dtype=torch.float64, device=self.device)
        for rows, F in self.coordinates(basis):
            Y = torch.nn.functional.one_hot(groups.of_row[rows], len(shares)).to(torch.float64) - shares
            fitted = (F @ coefficients.to(F.dtype)).to(torch.float64).reshape(len(F), len(ridges), -1)
            leverages[rows] = (F.square_() @ inverses.to(F.dtype)).to(torch.float64)
            rest = (1.0 - 1.0 / n - leverages[rows]).clamp(min=1e-12)
            errors += ((Y[:, None] - fitted) / rest[:, :, None]).square().sum(dim=(0, 2)) / n
        return errors, leverages

    def values(self, basis: LandmarkBasis, alpha: Tensor) -> Tensor:
        """Return the functionals' centred values u of shape (n, k)."""
        U = torch.empty((len(self.X), alpha.shape[1]), dtype=torch.float64, device=self.device)
        for rows, k in self.blocks():
            U[rows] = ((k - basis.mean.to(k.dtype)) @ alpha.to(k.dtype)).to(torch.float64)
        return U
