"""Criteria that need no labels: what each loses by the clusters that it would have chosen, of all stages at every η."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mercer import ManifoldClustering
from mercer.clustering.affinity import modularity
from mercer.clustering.manifold.manifold_clustering import ETAS, MEMBERSHIP_ETAS
from mercer.clustering.manifold.memberships import Clustered, Judge, spectral_clusters
from mercer.metrics import clustering_accuracy

from .data import Samples
from .runs import Measures, cached, fitted

CRITERIA = {
    "R - R_c": lambda clusters: clusters.reduction,
    "modularity": lambda clusters: modularity(clusters.P.double().numpy(), clusters.labels),
    "eigengap": lambda clusters: float(clusters.eigenvalues[-1] - clusters.eigenvalues[-2]),
}


def run_criteria(settings: dict[str, Any], seed: int) -> Measures:
    """Accuracy lost by each criterion, its correlation with the accuracy, and what shorter codes gain."""
    samples = cached(settings["data"], settings["rows"], seed)
    k = len(np.unique(samples.y))
    codes = [torch.from_numpy(C) for C in codes_of_stages(samples, k, seed)]
    defaults = ManifoldClustering()
    judge = Judge(codes[0], defaults.epsilon)
    found = [spectral_clusters(C, k, eta, defaults.affinity, seed, judge) for C in codes for eta in MEMBERSHIP_ETAS]
    return compared(found, judge, samples.y)


def compared(found: list[Clustered], judge: Judge, y: np.ndarray) -> Measures:
    """Compare criteria by clusters that were found, given the classes."""
    accuracies = np.array([clustering_accuracy(y, clusters.labels) for clusters in found])
    shorter = np.array([clustering_accuracy(y, judge.shortened(clusters.labels)) for clusters in found])
    best = float(accuracies.max())
    measures: Measures = {"best": best, "gain of shorter codes": float((shorter - accuracies).mean())}
    for name, criterion in CRITERIA.items():
        values = np.array([criterion(clusters) for clusters in found])
        measures[f"{name}: loss"] = best - float(accuracies[values.argmax()])
        varies = np.ptp(values) > 0 and np.ptp(accuracies) > 0
        measures[f"{name}: correlation"] = float(np.corrcoef(values, accuracies)[0, 1]) if varies else 0.0
    return measures


def codes_of_stages(samples: Samples, k: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the codes of the start and of the second stage with each η, all trained once."""
    with tempfile.TemporaryDirectory() as folder:
        shared = {"n_clusters": k, "assign_labels": "spectral", "checkpoint": Path(folder) / "training"}
        for stage, eta in (("start", ETAS[0]), *(("final", eta) for eta in ETAS)):
            model, _ = fitted(samples, {**shared, "eta": eta, "result": stage}, seed)
            yield model.codes_
