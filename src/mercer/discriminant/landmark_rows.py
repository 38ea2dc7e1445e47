"""Passes over the rows for discriminants of landmark functions: sums, values for each ridge; K_nm is never whole."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor, walk
from mercer.discriminant.directions import (
    Discriminants,
    Groups,
    LandmarkBasis,
    double_centred,
    effective_ridges,
    landmark_discriminants,
    left_out_values,
)
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

    def discriminants(
        self, basis: LandmarkBasis, groups: Groups, ridges: Sequence[float], n_components: int
    ) -> list[Discriminants]:
        """Return the discriminants for each ridge, with their values on the rows, left out too; one pass serves all.

        In the basis the smoother is H = F diag(1 / (spread + ridge)) F^T with the rows' coordinates F.
        """
        n = len(self.X)
        solved = [landmark_discriminants(basis, groups.counts, ridge, n_components) for ridge in ridges]
        widths = [beta.shape[1] for beta, _ in solved]
        betas = torch.cat([beta for beta, _ in solved], dim=1)
        # For each ridge the leverages at the ridge itself, and at the effective ridge of each component.
        at = [
            torch.cat([mu.new_full((1,), r), effective_ridges(r, mu)])
            for r, (_, mu) in zip(ridges, solved, strict=True)
        ]
        inverses = 1.0 / (basis.spread[:, None] + torch.cat(at))
        U = torch.empty((n, betas.shape[1]), dtype=torch.float64, device=self.device)
        leverages = torch.empty((n, inverses.shape[1]), dtype=torch.float64, device=self.device)
        for rows, F in self.coordinates(basis):
            U[rows] = (F @ betas.to(F.dtype)).to(torch.float64)
            leverages[rows] = (F.square_() @ inverses.to(F.dtype)).to(torch.float64)
        values, seen = U.split(widths, dim=1), leverages.split([width + 1 for width in widths], dim=1)
        return [
            Discriminants(basis.V @ beta, u, mu, left_out_values(u, mu, groups, h[:, 0], h[:, 1:], intercept=True))
            for (beta, mu), u, h in zip(solved, values, seen, strict=True)
        ]
