"""Clusterings that compete, of one iterate with one ridge each, and which of them is kept."""

from dataclasses import dataclass
from typing import Any

from mercer.clustering.expression import SelfExpression
from mercer.clustering.subspace.features import Features
from mercer.clustering.subspace.graphs import Clustering


@dataclass(frozen=True)
class Candidate:
    """One clustering, of one iterate with one ridge."""

    clustering: Clustering
    features: Features
    expression: SelfExpression
    ridge: float
    iteration: int

    def record(self, *, chosen: bool) -> dict[str, Any]:
        """Return what `history_` says of it."""
        values, k = self.clustering.spectrum.eigenvalues, self.clustering.n_clusters
        return {
            "iteration": self.iteration,
            "ridge": self.ridge,
            "n_clusters": k,
            "modularity": self.clustering.modularity,
            "eigengap": float(values[k] - values[k - 1]) if k < len(values) else 0.0,
            "chosen": chosen,
        }


def best_of(candidates: list[Candidate], iteration: int | None = None) -> Candidate:
    """Return the candidate of the largest modularity, of one iteration if that is given; the first of equals."""
    compared = [c for c in candidates if iteration in (None, c.iteration)]
    return max(compared, key=lambda candidate: candidate.clustering.modularity)
