"""Views of table rows that move a row towards one of its neighbors, and the choice of how far it moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.views.base import View

N_NEIGHBORS = 5
# Strengths that are tried, as shares of the way to a neighbor, and the share of rows that must be nearest to their own
# view.
STRENGTHS = (1.0, 0.75, 0.5, 0.25)
MOST = 0.5
# Number of rows among which neighbors are searched, and number of rows with which the strength is chosen.
REFERENCES, JUDGED = 1000, 500
# Rows count as equal if their squared distance is below this share of the mean one, and two squared distances count as
# equal if they differ by less than this share of the mean one.
EQUAL_ROWS, EQUAL_DISTANCES = 1e-5, 1e-6


class NeighborMixing(View):
    """Rows x that are moved towards a neighbor z: x + t (z - x), with t uniform between 0 and `strength`.

    z is drawn from the nearest of some reference rows. Noise in every column moves a row away from the data and treats
    all directions alike. A row between two neighbors stays close to the data, so that the views of a row differ in the
    same way as similar rows do.

    Parameters
    ----------
    references : tensor of shape (m, d)
        The rows among which neighbors are searched.
    kernel : Kernel
        The kernel whose distance |phi(x) - phi(z)| decides which rows are near.
    strength : float, default=1.0
        The largest t, from 0 to 1.
    n_neighbors : int, default=5
        The number of nearest reference rows from which z is drawn.

    Notes
    -----
    O(b m d) for a batch of b rows.
    """

    def __init__(self, references: Tensor, kernel: Any, strength: float = 1.0, n_neighbors: int = N_NEIGHBORS) -> None:
        self.references = references
        self.kernel = kernel
        self.strength = strength
        self.n_neighbors = n_neighbors

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        strength = check_number("strength", self.strength, at_least=0.0, at_most=1.0)
        k = min(check_count("n_neighbors", self.n_neighbors), len(self.references))
        references = self.references.to(batch)
        squares = squared_distances(self.kernel, batch, references)
        # A row is not its own neighbor if it is a reference row, and neither are rows equal to it.
        squares = torch.where(squares > EQUAL_ROWS * squares.mean(), squares, torch.inf)
        nearest = squares.topk(k, dim=1, largest=False).indices
        drawn = torch.randint(k, (len(batch), 1), generator=generator).to(batch.device)
        t = strength * torch.rand((len(batch), 1), generator=generator, dtype=batch.dtype).to(batch.device)
        return batch + t * (references[nearest.gather(1, drawn)[:, 0]] - batch)


def squared_distances(kernel: Any, first: Tensor, second: Tensor) -> Tensor:
    """Return the squared distances in a kernel's feature space, k(x, x) + k(z, z) - 2 k(x, z), of shape (n, m)."""
    norms = [torch.as_tensor(kernel.diagonal(rows)).to(rows) for rows in (first, second)]
    return norms[0][:, None] + norms[1] - 2.0 * kernel.matrix(first, second)


def references_of(X: np.ndarray, seed: int) -> np.ndarray:
    """Return a copy of at most 1000 rows of X, drawn with the seed, among which neighbors are searched."""
    if len(X) <= REFERENCES:
        return np.array(X[:], order="C")
    return X[np.sort(np.random.default_rng(seed).permutation(len(X))[:REFERENCES])].copy(order="C")


def strength_of(rows: Tensor, kernel: Any, strengths: Sequence[float] = STRENGTHS, seed: int = 0) -> float:
    """Choose, without labels, how far rows may move towards their neighbors.

    Returns the largest strength at which at least half of the rows are the nearest row to their own view.

    Parameters
    ----------
    rows : tensor of shape (n, d)
        The reference rows, of which the first 500 are tested.
    kernel : Kernel
    strengths : sequence of float
        The strengths to try, the largest first. The last is returned if none passes the test.
    seed : int, default=0
    """
    judged = rows[:JUDGED]
    for strength in strengths:
        views = NeighborMixing(rows, kernel, strength)(judged, torch.Generator().manual_seed(seed))
        squares = squared_distances(kernel, views, rows)
        # The tolerance is for rows that are equal to the row itself, up to rounding.
        nearest = squares.diagonal() <= squares.min(dim=1).values + EQUAL_DISTANCES * squares.mean()
        if float(nearest.to(torch.float64).mean()) >= MOST:
            return strength
    return strengths[-1]
