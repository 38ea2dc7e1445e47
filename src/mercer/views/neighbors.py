"""Views of table rows that know the data: a row on its way to one of its neighbors, as far as it stays itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.views.base import View

N_NEIGHBORS = 5
# How far on the way to a neighbor, at most; and the share of rows that must stay the nearest to their own view.
STRENGTHS = (1.0, 0.75, 0.5, 0.25)
MOST = 0.5
# Rows that neighbors are found among, and rows that the strength is chosen on.
REFERENCES, JUDGED = 1000, 500


class NeighborMixing(View):
    """x + t (z - x), z one of the nearest of some reference rows by a kernel, t uniform between 0 and `strength`.

    Noise in every column leads away from the data, and says only that all directions are alike. Between neighbors a row
    stays among the data, and views of one row vary as rows of one kind do.

    Parameters
    ----------
    references : tensor of shape (m, d)
        Rows that neighbors are found among.
    kernel : Kernel
        Rows are as far apart as they are in its space.
    strength : float, default=1.0
        From 0 to 1.
    n_neighbors : int, default=5

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
        # A row that is a reference itself is none of its neighbors; nor is an equal one, to which there is no way.
        squares = torch.where(squares > 1e-5 * squares.mean(), squares, torch.inf)
        nearest = squares.topk(k, dim=1, largest=False).indices
        drawn = torch.randint(k, (len(batch), 1), generator=generator).to(batch.device)
        t = strength * torch.rand((len(batch), 1), generator=generator, dtype=batch.dtype).to(batch.device)
        return batch + t * (references[nearest.gather(1, drawn)[:, 0]] - batch)


def squared_distances(kernel: Any, first: Tensor, second: Tensor) -> Tensor:
    """Return how far rows are apart in a kernel's space: k(x, x) + k(z, z) - 2 k(x, z), of shape (n, m)."""
    norms = [torch.as_tensor(kernel.diagonal(rows)).to(rows) for rows in (first, second)]
    return norms[0][:, None] + norms[1] - 2.0 * kernel.matrix(first, second)


def references_of(X: np.ndarray, seed: int) -> np.ndarray:
    """Return a copy of the rows that neighbors are found among, drawn by the seed."""
    if len(X) <= REFERENCES:
        return np.array(X[:], order="C")
    return X[np.sort(np.random.default_rng(seed).permutation(len(X))[:REFERENCES])].copy(order="C")


def strength_of(rows: Tensor, kernel: Any, strengths: Sequence[float] = STRENGTHS, seed: int = 0) -> float:
    """Return the largest strength at which most rows are the nearest to their own view: without labels, how far to go.

    Parameters
    ----------
    rows : tensor of shape (n, d)
        References, of which some are looked at.
    kernel : Kernel
    strengths : sequence of float
        Largest first; the last is taken if none will do.
    seed : int, default=0
    """
    judged = rows[:JUDGED]
    for strength in strengths:
        views = NeighborMixing(rows, kernel, strength)(judged, torch.Generator().manual_seed(seed))
        squares = squared_distances(kernel, views, rows)
        # Equal rows are as near as the row itself, up to rounding.
        nearest = squares.diagonal() <= squares.min(dim=1).values + 1e-6 * squares.mean()
        if float(nearest.to(torch.float64).mean()) >= MOST:
            return strength
    return strengths[-1]
