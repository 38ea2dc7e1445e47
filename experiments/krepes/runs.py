"""Run one embedding of one set: the linear probe with 10 % of the labels, time, and measures of its landmarks."""

import time
from typing import Any

import numpy as np

from experiments.data import prepared
from mercer import KernelEmbedding
from mercer.embedding.choices import bandwidth_of
from mercer.embedding.linear_probe import linear_probe
from mercer.metrics import class_coverage, effective_rank, expected_class_coverage

from .contestants import contestant
from .network_embedding import NetworkEmbedding
from .networks import parameters_of

Measures = dict[str, float | str]

LABELED = 0.1
TOP = 3
# The number of test rows whose top landmarks are computed. The standard error of a share is then about 1 %.
EXPLAINED_ROWS = 2000


def run(settings: dict[str, Any], seed: int) -> Measures:
    """Fit without labels, and score; the labeled rows depend on the seed alone, so all contestants have the same."""
    X, y, X_test, y_test = prepared(
        settings["data"]["name"], settings["data"]["n_train"], settings["data"]["n_test"], seed
    )
    model = contestant(settings["contestant"], dict(settings["options"]), X, seed)
    start = time.perf_counter()
    if model is not None:
        model.fit(X)
    fitted = time.perf_counter()
    probe = linear_probe(model, X, y, X_test, y_test, labeled=LABELED, random_state=seed)
    measures: Measures = {
        "accuracy": probe.accuracy,
        "balanced accuracy": probe.balanced_accuracy,
        "labeled rows": probe.n_labeled,
        "probe seconds": time.perf_counter() - fitted,
    }
    if model is not None:
        measures["fit seconds"] = fitted - start
    if isinstance(model, NetworkEmbedding):
        measures["parameters"] = parameters_of(model.network_)
    if isinstance(model, KernelEmbedding):
        measures |= (
            trained(model) | chosen(model) | interpretation(model, y, X_test[:EXPLAINED_ROWS], y_test[:EXPLAINED_ROWS])
        )
    return measures


def chosen(model: KernelEmbedding) -> Measures:
    """Return the parameters that the estimator chose without labels."""
    return {
        "components": model.coefficients_.shape[1],
        "bandwidth": bandwidth_of(model.kernel_) or 0.0,
        "ridge": model.ridge_,
        "loss": model.loss_,
    }


def trained(model: KernelEmbedding) -> Measures:
    """Return the number of parameters, the effective rank of A, and the spectrum of A^T A (Figure 1)."""
    A = model.coefficients_.astype(np.float64)
    spectrum = np.linalg.svd(A, compute_uv=False) ** 2
    return {
        "parameters": A.size,
        "effective rank": effective_rank(A),
        "spectrum of A^T A": " ".join(f"{value:.4g}" for value in spectrum),
    }


def interpretation(model: KernelEmbedding, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Measures:
    """Measure whether the important landmarks cover all classes (kappa), and whether a row's are of its own class.

    For comparison, kappa is also given as the mean over random orders, both over the classes that landmarks have. The
    share of the row's class among the landmarks of largest influence is compared with the share among those of largest
    kernel value.
    """
    labels = y[model.landmark_indices_]
    nearest = np.argsort(-model.kernel_.matrix(X_test, model.landmarks_), axis=1, kind="stable")[:, :TOP]

    def share(landmarks: np.ndarray) -> float:
        return float(np.mean(labels[landmarks] == y_test[:, None]))

    return {
        "kappa": class_coverage(model.coefficients_, labels),
        "kappa of a random order": expected_class_coverage(labels),
        "top 3 of the class": share(model.top_landmarks(X_test, TOP)),
        "top 3 by the kernel alone": share(nearest),
    }
