"""Run one method on one draw of a set; measure accuracy, NMI and time, for ManifoldClustering after each stage."""

import time
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import normalized_mutual_info_score

from mercer import ManifoldClustering, SubspaceClustering
from mercer.exceptions import DataWarning
from mercer.metrics import clustering_accuracy, numerical_rank
from mercer.papers import mlc, nmce
from mercer.papers.manifold_linearizing_clustering import SECOND
from mercer.training import Recipe

from .data import N_VIEWS, Samples, halved, samples_of, two_manifolds

Measures = dict[str, float | str]
ENERGY = 0.95
PRESETS = {"mlc": mlc, "nmce": nmce}
# The number of epochs of lines 3 to 9, which the paper does not give; a step with d = 128 takes a second.
PRINTED_EPOCHS = 20
# Rows that are features need no backbone. The width of the heads is not printed, so it is the default. The views are
# those of all contestants.
ON_FEATURES: dict[str, Any] = {"backbone": None, "hidden": 512, "augment": "auto"}
# Appendix D.1: heads of 100 hidden neurons, features in three dimensions, all points a batch. It does not say how they
# are trained; the second stage continues until nothing changes.
ON_MANIFOLDS: dict[str, Any] = {"backbone": None, "hidden": 100, "n_components": 3, "augment": "noise"}
MANIFOLD_EPOCHS = 600


def run_manifolds(settings: dict[str, Any], seed: int) -> Measures:
    """Fit the two manifolds; return accuracies of both stages, ranks of the true clusters and their largest cosine."""
    samples = two_manifolds(settings["deviation"], seed)
    auto, _ = fitted(samples, settings["options"], seed)
    other = "final" if auto.stage_ == "start" else "start"
    stages = {auto.stage_: auto, other: fitted(samples, settings["options"] | {"result": other}, seed)[0]}
    start, final = stages["start"], stages["final"]
    Z = final.transform(samples.X)
    return {
        "accuracy": clustering_accuracy(samples.y, auto.labels_),
        "start accuracy": clustering_accuracy(samples.y, final.start_labels_),
        "final accuracy": clustering_accuracy(samples.y, final.final_labels_),
        "first rank": numerical_rank(Z[samples.y == 0], energy=ENERGY),
        "second rank": numerical_rank(Z[samples.y == 1], energy=ENERGY),
        "start cosine": largest_cosine(start.transform(samples.X), samples.y),
        "final cosine": largest_cosine(Z, samples.y),
    }


def run_printed_manifolds(settings: dict[str, Any], seed: int) -> Measures:
    """Fit the two manifolds by a preset."""
    samples = two_manifolds(settings["deviation"], seed)
    changed = {**ON_MANIFOLDS, "random_state": seed}
    if settings["preset"] == "mlc":
        changed["recipe"] = replace(SECOND, n_epochs=MANIFOLD_EPOCHS)
    model = PRESETS[settings["preset"]](2, **changed).fit(samples.X)
    Z = model.transform(samples.X)
    return {
        "accuracy": clustering_accuracy(samples.y, model.labels_),
        "start accuracy": clustering_accuracy(samples.y, model.start_labels_),
        "first rank": numerical_rank(Z[samples.y == 0], energy=ENERGY),
        "second rank": numerical_rank(Z[samples.y == 1], energy=ENERGY),
        "final cosine": largest_cosine(Z, samples.y),
    }


def run_printed(settings: dict[str, Any], seed: int) -> Measures:
    """Fit a preset to a set, as printed except for what must change because the rows are features."""
    samples = cached(settings["data"], settings["rows"], seed)
    k = len(np.unique(samples.y))
    changed = {
        **ON_FEATURES,
        "standardize": not samples.views,
        "image_shape": samples.image_shape,
        "random_state": seed,
    }
    if settings["preset"] == "mlc":
        changed["recipe"] = replace(SECOND, n_epochs=PRINTED_EPOCHS)
    model = PRESETS[settings["preset"]](k, **changed)
    start = time.perf_counter()
    model = model.fit_views(samples.X, *samples.views) if samples.views else model.fit(samples.X)
    seconds = time.perf_counter() - start
    return {
        **scores(samples.y, model.labels_),
        "start accuracy": clustering_accuracy(samples.y, model.start_labels_),
        "fit seconds": seconds,
    }


def largest_cosine(Z: np.ndarray, y: np.ndarray) -> float:
    """Return the largest cosine between the plane of the first cluster and the line of the second."""
    plane, line = (np.linalg.svd(Z[y == label])[2][:rank] for label, rank in ((0, 2), (1, 1)))
    return float(np.linalg.norm(plane @ line.T, ord=2))


def run_set(settings: dict[str, Any], seed: int) -> Measures:
    """Run a contestant on a set; all contestants get the same rows and features."""
    has_views = settings["contestant"] == "ManifoldClustering"
    mean_kept = settings.get("mean_kept", False)
    samples = cached(settings["data"], settings["rows"], seed, mean_kept=mean_kept, n_views=N_VIEWS if has_views else 0)
    if settings.get("imbalanced"):
        samples = halved(samples, seed)
    k = len(np.unique(samples.y))
    if has_views:
        model, seconds = fitted(samples, {"n_clusters": k} | settings["options"], seed)
        return described(model, samples.y) | {"fit seconds": seconds}
    start = time.perf_counter()
    labels = peer(settings["contestant"], samples.X, k, settings["options"], seed)
    return scores(samples.y, labels) | {"fit seconds": time.perf_counter() - start}


# The samples of a seed are used by every contestant in turn. Views take six times the work, and only some use them.
@lru_cache(maxsize=9)
def cached(name: str, n: int | None, seed: int, *, mean_kept: bool = False, n_views: int = N_VIEWS) -> Samples:
    return samples_of(name, n, seed, mean_kept=mean_kept, n_views=n_views)


def fitted(samples: Samples, options: dict[str, Any], seed: int) -> tuple[ManifoldClustering, float]:
    """Return the fitted model and the seconds; it is fitted to the given views, or to rows if there are none.

    Given views have a common scale and are not standardized.
    """
    made = {name: Recipe(**value) if name.endswith("recipe") else value for name, value in options.items()}
    start = time.perf_counter()
    if samples.views:
        model = ManifoldClustering(**made, standardize=False, random_state=seed)
        model.fit_views(samples.X, *samples.views)
    else:
        model = ManifoldClustering(**made, image_shape=samples.image_shape, random_state=seed).fit(samples.X)
    return model, time.perf_counter() - start


def described(model: ManifoldClustering, y: np.ndarray) -> Measures:
    """Return the scores of both stages and of the result that was kept."""
    start, final = scores(y, model.start_labels_), scores(y, model.final_labels_)
    candidates = "; ".join(
        f"{c['stage']} {c['trained_eta'] or ''} at {c['eta']}: {c['rate_reduction']:.3f}" for c in model.candidates_
    )
    return {
        **scores(y, model.labels_),
        "start accuracy": start["accuracy"],
        "final accuracy": final["accuracy"],
        "kept": model.stage_,
        "candidates": candidates,
    }


def peer(name: str, X: np.ndarray, k: int, options: dict[str, Any], seed: int) -> np.ndarray:
    """Return the labels of a peer, or of SubspaceClustering with options."""
    if name == "k-means":
        return KMeans(k, n_init=10, random_state=seed).fit(X).labels_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Graph is not fully connected", UserWarning)
        warnings.simplefilter("ignore", DataWarning)
        if name == "10-NN spectral":
            model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
            return model.fit_predict(X)
        return SubspaceClustering(k, **options, random_state=seed).fit(X.astype(np.float64)).labels_


def scores(y: np.ndarray, labels: np.ndarray) -> Measures:
    return {
        "accuracy": clustering_accuracy(y, labels),
        "nmi": float(normalized_mutual_info_score(y, labels)),
    }
