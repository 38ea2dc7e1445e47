"""Run one method on one trial of faces or on another set; measure NMI, ARI, accuracy, time, and what it chose."""

import time
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.utils import check_random_state

from experiments.data import drawn
from mercer import SubspaceClustering, datasets, papers
from mercer.clustering import subspace
from mercer.clustering.subspace.features import unit_rows
from mercer.clustering.subspace.graphs import Graph, proposed_labels
from mercer.exceptions import DataWarning
from mercer.metrics import clustering_accuracy, subspace_preserving_error

from .geometry import before_and_after

KMEANS_SEEDS = 5

Measures = dict[str, float | str]


def run_yale(settings: dict[str, Any], seed: int) -> Measures:
    """Run a trial of the paper: images of consecutive subjects, with scores averaged over five seeds of k-means."""
    data = datasets.load("yaleb")
    k, first = settings["subjects"], 2 * seed
    rows = (data.y >= first) & (data.y < first + k)
    X, y = data.X[rows].reshape(rows.sum(), -1), data.y[rows]
    model, seconds = fitted(X, k, settings["method"], 0)
    graph = Graph(model.coef_, model.affinity_matrix_, through_landmarks=False)
    spectrum, how = graph.spectrum(k, check_random_state(0)), model.assign_labels
    labels = [proposed_labels(graph, spectrum, k, how, check_random_state(i)) for i in range(KMEANS_SEEDS)]
    unit = unit_rows(torch.from_numpy(X.astype(np.float64))).numpy()
    return (
        averaged([scores(y, found) for found in labels])
        | described(model, y)
        | before_and_after(unit, model.dictionary_, y)
        | {"fit seconds": seconds}
    )


def run_set(settings: dict[str, Any], seed: int) -> Measures:
    """Cluster another set once; without a method, by scikit-learn's spectral clustering with 10 nearest neighbors."""
    X, y = rows_of(settings["data"], settings["rows"], seed)
    k = len(np.unique(y))
    if settings["method"] is None:
        start = time.perf_counter()
        peer = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Graph is not fully connected", UserWarning)
            labels = peer.fit_predict(X)
        return scores(y, labels) | {"fit seconds": time.perf_counter() - start}
    model, seconds = fitted(X, k, settings["method"], seed)
    return scores(y, model.labels_) | described(model, y) | {"fit seconds": seconds}


def rows_of(name: str, count: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` rows of a set with their labels, or all of them, including its test rows, if it is None."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    data = datasets.load(name)
    X, y = data.X.reshape(len(data.X), -1), data.y
    if count is not None:
        return drawn(X, y, count, seed)
    if data.X_test is not None and data.y_test is not None:
        X, y = np.vstack([X, data.X_test.reshape(len(data.X_test), -1)]), np.concatenate([y, data.y_test])
    return X, y


def estimator(k: int, method: dict[str, Any], seed: int) -> SubspaceClustering:
    """Return a preset of `mercer.papers`, or a SubspaceClustering with options, one of which may name a class."""
    if "paper" in method:
        model = getattr(papers, method["paper"])(k, method["lambda_"], random_state=seed)
        return model.set_params(**method.get("settings", {}))
    options = dict(method)
    if isinstance(options.get("feature_learning"), dict):
        settings = dict(options["feature_learning"])
        options["feature_learning"] = getattr(subspace, settings.pop("class"))(**settings)
    return SubspaceClustering(k, **options, random_state=seed)


def fitted(X: np.ndarray, k: int, method: dict[str, Any], seed: int) -> tuple[SubspaceClustering, float]:
    """Return the fitted model and the seconds; graphs that are not connected are part of the test, without warning."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = estimator(k, method, seed).fit(X)
    return model, time.perf_counter() - start


def scores(y: np.ndarray, labels: np.ndarray) -> Measures:
    return {
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "ari": float(adjusted_rand_score(y, labels)),
        "accuracy": float(clustering_accuracy(y, labels)),
    }


def averaged(found: list[Measures]) -> Measures:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def described(model: SubspaceClustering, y: np.ndarray) -> Measures:
    """Return what was chosen without labels, and the share of the coefficients on rows of other classes."""
    measures: Measures = {"iterate": model.n_iter_, "ridge": model.ridge_, "modularity": model.modularity_}
    if model.affinity_matrix_ is not None:
        measures["outside of the class"] = float(subspace_preserving_error(model.coef_, y))
    return measures
