"""A table seen through landmarks: drawn from a sample of its rows, with the sums over all rows and errors at some."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel
from mercer.landmarks import choose_landmarks
from mercer.linalg import RidgeSolution
from mercer.tabular_models.landmark_ridge import LandmarkSums, landmark_path, landmark_sums
from mercer.tabular_models.table import Table

# Landmarks are drawn from, and leave-one-out errors taken at, no more rows than this.
MOST_SAMPLED = 20_000


class Drawn(NamedTuple):
    """Landmarks of a table, warped, of shape (m, d), and which of its rows they are."""

    landmarks: Tensor
    row_index: np.ndarray


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
            self.sums,
            self.kernel,
            Z,
            self.landmarks,
            self.rows.y,
            ridges,
            self.rows.weights,
            working_memory=self.working_memory,
        )


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
    pool = pool_of(table, n_landmarks, random)
    rows = pool.sample(MOST_SAMPLED, random)
    drawn = drawn_landmarks(kernel, pool, warp, n_landmarks, method, random, working_memory)
    sums = landmark_sums(
        kernel,
        table.X,
        drawn.landmarks,
        table.y,
        table.weights,
        warp=table.columns(warp).transform,
        working_memory=working_memory,
    )
    return LandmarkTable(*drawn, sums, rows, warp, kernel, working_memory)


def pool_of(table: Table, n_landmarks: int, random: np.random.RandomState) -> Table:
    """Return the rows that landmarks are drawn from."""
    return table.sample(max(MOST_SAMPLED, 2 * n_landmarks), random)


def drawn_landmarks(
    kernel: Kernel,
    pool: Table,
    warp: Any,
    n_landmarks: int,
    method: str,
    random: np.random.RandomState,
    working_memory: float,
) -> Drawn:
    """Draw landmarks from a sample of a table."""
    Z = pool.warped(warp)
    chosen = choose_landmarks(
        Z,
        n_landmarks,
        method,
        metric=kernel.common_metric(),
        kernel=kernel,
        random_state=random,
        working_memory=working_memory,
    )
    return Drawn(Z[torch.from_numpy(chosen).to(Z.device)], pool.index[chosen])
