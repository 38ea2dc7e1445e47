"""A table seen through landmarks: drawn from a sample of its rows, with the sums over all rows and errors at some."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel
from mercer.landmarks import choose_landmarks
from mercer.linalg import RidgeSolution
from mercer.supervised.landmark_ridge import LandmarkSums, landmark_path, landmark_sums
from mercer.supervised.table import Table

# Landmarks are drawn from, and leave-one-out errors taken at, no more rows than this.
MOST_SAMPLED = 20_000


class LandmarkTable(NamedTuple):
    """The landmarks of one kernel on a table.

    Attributes
    ----------
    landmarks : tensor of shape (m, d)
        Warped.
    row_index : ndarray of shape (m,)
        Which rows of the table they are.
    sums : LandmarkSums
        Over all rows.
    rows : Table
        The rows at which errors are left out.
    warp : str or tuple of str
    kernel : Kernel
    working_memory : float
    """

    landmarks: Tensor
    row_index: np.ndarray
    sums: LandmarkSums
    rows: Table
    warp: Any
    kernel: Kernel
    working_memory: float

    def solutions(self, ridges: Sequence[float]) -> list[RidgeSolution]:
        """Return the solution of each ridge, with its leave-one-out errors at `rows`."""
        Z = self.rows.warped(self.warp)
        return landmark_path(
            self.sums, self.kernel, Z, self.landmarks, self.rows.y, ridges, self.rows.weights,
            working_memory=self.working_memory,
        )  # fmt: skip


def through_landmarks(
    kernel: Kernel,
    table: Table,
    warp: Any,
    n_landmarks: int,
    method: str,
    random_state: int,
    working_memory: float,
) -> LandmarkTable:
    """Draw landmarks and go once over the rows; one `random_state` leaves the same rows out for every kernel.

    O(n m (d + m)) time; beside the table, memory for a block and O(m^2).
    """
    random = np.random.RandomState(random_state)
    pool = table.sample(max(MOST_SAMPLED, 2 * n_landmarks), random)
    rows = pool.sample(MOST_SAMPLED, random)
    Z, metric = pool.warped(warp), kernel.common_metric()
    chosen = choose_landmarks(
        Z, n_landmarks, method, metric=metric, kernel=kernel, random_state=random, working_memory=working_memory
    )
    landmarks = Z[torch.from_numpy(chosen).to(Z.device)]
    sums = landmark_sums(
        kernel, table.X, landmarks, table.y, table.weights,
        warp=table.columns(warp).transform, working_memory=working_memory,
    )  # fmt: skip
    return LandmarkTable(landmarks, pool.index[chosen], sums, rows, warp, kernel, working_memory)
