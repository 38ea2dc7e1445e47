"""The choice between clusterings, each found from one iterate with one ridge, by their modularity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from mercer.clustering.expression import SelfExpression
from mercer.clustering.subspace.features import Features
from mercer.clustering.subspace.graphs import Clustering
from mercer.kernels import Kernel
from mercer.linalg import largest_eigenvalue

# Modularities that differ by at most this count as equal, and the larger ridge is kept. On ten faces with all of their
# images a margin of .005 gains .005 NMI. With half of the images the larger ridge may group them by light (ALGORITHMS).
EQUAL = 0.001


class Iterate(NamedTuple):
    """The points after `number` projections, with their kernel matrix and its largest eigenvalue."""

    number: int
    features: Features
    K: Tensor
    largest: float


def iterate_of(number: int, features: Features, kernel: Kernel) -> Iterate:
    """Return an iterate with its kernel matrix (Alg. 1, line 2)."""
    K = kernel.matrix(features.rows)
    return Iterate(number, features, K, largest_eigenvalue(K))


@dataclass(frozen=True)
class Candidate:
    """One clustering, found from one iterate with one ridge."""

    clustering: Clustering
    features: Features
    expression: SelfExpression
    ridge: float
    iteration: int

    @property
    def modularity(self) -> float:
        return self.clustering.modularity

    def record(self, *, chosen: bool) -> dict[str, Any]:
        """Return the entry for `history_`."""
        values, k = self.clustering.spectrum.eigenvalues, self.clustering.n_clusters
        return {
            "iteration": self.iteration,
            "ridge": self.ridge,
            "n_clusters": k,
            "modularity": self.modularity,
            "eigengap": float(values[k] - values[k - 1]) if k < len(values) else 0.0,
            "chosen": chosen,
        }


def climbed(judge: Callable[[int], Candidate], start: int, count: int) -> list[Candidate]:
    """Search a grid of ridges for the largest modularity, from a start uphill; return all results that were computed.

    Apart from small fluctuations, modularity rises up to some ridge and falls after it. The search moves to the better
    neighbor until both neighbors are worse, and then on to larger ridges as long as their modularity is equal. On 198
    grids of eight ridges (faces, objects and digits, three iterates) it computes 4 results, and the best of them is
    .0001 below the largest of the grid in the mean.

    Parameters
    ----------
    judge : callable
        Returns the result at a position of the grid.
    start : int
        The position that is tried first.
    count : int
        The length of the grid.
    """
    found = {start: judge(start)}

    def at(place: int) -> Candidate:
        if place not in found:
            found[place] = judge(place)
        return found[place]

    top = start
    while True:
        near = [place for place in (top, top - 1, top + 1) if 0 <= place < count]
        best = max(near, key=lambda place: at(place).modularity)
        if best == top:
            break
        top = best
    place = top + 1
    while place < count and at(place).modularity >= at(top).modularity - EQUAL:
        place += 1
    return list(found.values())


def highest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the result with the largest modularity, the first one if several are equal."""
    return max(candidates, key=lambda candidate: candidate.modularity)


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """Return the result with the largest modularity; of equal ones of the same iterate, that with the largest ridge."""
    top = highest(candidates)
    equals = [c for c in candidates if c.features is top.features and c.modularity >= top.modularity - EQUAL]
    return max(equals, key=lambda candidate: candidate.ridge)
