"""The accuracy that criteria without labels lose by their choice among the clusters of all stages and every η."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mercer import ManifoldClustering
from mercer.clustering.affinity import modularity
from mercer.clustering.manifold.choice import Clustered, Judge
from mercer.clustering.manifold.memberships import Memberships, spectral_clusters
from mercer.clustering.manifold.projections import Entropy
from mercer.clustering.manifold.shortest_code import shortened
from mercer.metrics import clustering_accuracy

from .data import Samples
from .runs import Measures, cached, fitted

CRITERIA = {
    "R - R_c": lambda clusters: clusters.reduction,
    "modularity": lambda clusters: modularity(clusters.spectral.P.double().numpy(), clusters.labels),
    "eigengap": lambda clusters: float(clusters.spectral.eigenvalues[-1] - clusters.spectral.eigenvalues[-2]),
}


def run_criteria(settings: dict[str, Any], seed: int) -> Measures:
    """Return the accuracy lost by each criterion, its correlation with the accuracy, and the gain of shorter codes."""
    samples = cached(settings["data"], settings["rows"], seed)
    k = len(np.unique(samples.y))
    codes = [torch.from_numpy(C) for C in codes_of_stages(samples, k, seed)]
    defaults = ManifoldClustering()
    judge = Judge(codes[0], defaults.epsilon)
    found = []
    for C in codes:
        for eta in Entropy.sharpest:
            spectral = spectral_clusters(C, k, Memberships(eta, defaults.affinity), seed)
            found.append(Clustered(spectral.labels, judge.reduction(spectral.labels), C, spectral))
    return compared(found, judge, samples.y)


def compared(found: list[Clustered], judge: Judge, y: np.ndarray) -> Measures:
    """Compare the criteria on these clusters, given the true classes y."""
    accuracies = np.array([clustering_accuracy(y, clusters.labels) for clusters in found])
    shorter = np.array(
        [clustering_accuracy(y, shortened(judge.Z, clusters.labels, judge.epsilon).labels) for clusters in found]
    )
    best = float(accuracies.max())
    measures: Measures = {"best": best, "gain of shorter codes": float((shorter - accuracies).mean())}
    for name, criterion in CRITERIA.items():
        values = np.array([criterion(clusters) for clusters in found])
        measures[f"{name}: loss"] = best - float(accuracies[values.argmax()])
        varies = np.ptp(values) > 0 and np.ptp(accuracies) > 0
        measures[f"{name}: correlation"] = float(np.corrcoef(values, accuracies)[0, 1]) if varies else 0.0
    return measures


def codes_of_stages(samples: Samples, k: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the codes of the start and of the second stage with each η; each training is done once."""
    with tempfile.TemporaryDirectory() as folder:
        shared = {"n_clusters": k, "assign_labels": "spectral", "checkpoint": Path(folder) / "training"}
        for stage, eta in (("start", Entropy.trained[0]), *(("final", eta) for eta in Entropy.trained)):
            model, _ = fitted(samples, {**shared, "eta": eta, "result": stage}, seed)
            yield model.codes_
