"""Runs of one embedding each: the tuning of appendix B.3, and the probe with 10 % of the labels (appendix B)."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.model_selection import ParameterSampler, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from experiments.data import prepared
from experiments.krepes.network_embedding import NetworkEmbedding
from experiments.krepes.networks import ResMLP, parameters_of
from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.embedding.linear_probe import linear_probe, probe_scorer
from mercer.embedding.preconditioners import GaussNewton, Identity, KernelMatrix
from mercer.metrics import effective_rank
from mercer.papers import krepes, krepes_search
from mercer.papers.kernel_representations import DrawnSteps
from mercer.training import Recipe

Measures = dict[str, float | str]
PRECONDITIONERS = {"none": Identity(), "general": KernelMatrix(), "gauss_newton": GaussNewton()}
# The width of the ResMLP; in the paper it is 1032, with 5 million parameters.
WIDTH = 128


def run_embedding(settings: dict[str, Any], seed: int) -> Measures:
    """Search, fit the best setting on all rows, and probe it; the search does not use the test rows of the probe."""
    data, loss = settings["data"], settings["loss"]
    X, y, X_test, y_test = prepared(data["name"], data["n_train"], data["n_test"], seed)
    with threadpool_limits(1):
        start = time.process_time()
        search = krepes_search(loss, images=data["image_shape"] is not None, random_state=seed, **options_of(settings))
        model = search.fit(X, y).best_estimator_
        seconds = time.process_time() - start
        probe = linear_probe(model, X, y, X_test, y_test, random_state=seed)
    chosen = getattr(getattr(model.solver, "optimizer", None), "learning_rate", None)
    return {
        "accuracy": probe.accuracy,
        "balanced accuracy": probe.balanced_accuracy,
        "effective rank": effective_rank(model.coefficients_),
        "parameters": model.coefficients_.size,
        "search seconds": seconds,
        "chosen": f"ridge {model.ridge_:.3g}" + ("" if chosen is None else f", rate {chosen:.3g}"),
    }


def options_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from `papers.krepes`: sizes, landmarks, views, and those of the solver."""
    options = {
        "n_draws": settings["draws"],
        "n_landmarks": settings["m"],
        "n_components": settings["h"],
        "landmarks": settings["landmarks"],
    }
    shape = settings["data"]["image_shape"]
    if shape is not None:
        options |= {"augment": "auto", "image_shape": tuple(shape)}
    solver = krepes(settings["loss"]).solver
    if isinstance(solver, Steps):
        changes = {"epochs": settings["epochs"], "start": settings.get("start", "principal")}
        if "preconditioner" in settings:
            changes["preconditioner"] = PRECONDITIONERS[settings["preconditioner"]]
        options["solver"] = replace(solver, **changes)
    else:
        options["solver"] = replace(solver, rounds=1, iterations=settings["epochs"])
    return options


def run_network(settings: dict[str, Any], seed: int) -> Measures:
    """Train the network of Table 1; its rate is chosen by the same draws, rows and scores as that of the kernel."""
    data = settings["data"]
    X, y, X_test, y_test = prepared(data["name"], data["n_train"], data["n_test"], seed)
    score = probe_scorer(labeled=0.5, balanced="auto")
    train, held_out = next(StratifiedShuffleSplit(1, test_size=0.1, random_state=seed).split(X, y))

    def fitted(rate: float, rows: Any) -> NetworkEmbedding:
        recipe = Recipe(n_epochs=settings["epochs"], batch_size=256, learning_rate=rate, warmup_epochs=1.0)
        network = partial(ResMLP, width=WIDTH)
        embedding = NetworkEmbedding(
            network, loss=settings["loss"], recipe=recipe, n_components=settings["h"], random_state=seed
        )
        return embedding.fit(rows)

    with threadpool_limits(1):
        start = time.process_time()
        drawn = ParameterSampler({"rate": DrawnSteps.learning_rate}, settings["draws"], random_state=seed)
        rates = [float(each["rate"]) for each in drawn]
        scores = [score(fitted(rate, X[train]), X[held_out], y[held_out]) for rate in rates]
        best = rates[scores.index(max(scores))]
        model = fitted(best, X)
        seconds = time.process_time() - start
        probe = linear_probe(model, X, y, X_test, y_test, random_state=seed)
    return {
        "accuracy": probe.accuracy,
        "balanced accuracy": probe.balanced_accuracy,
        "parameters": parameters_of(model.network_),
        "search seconds": seconds,
        "chosen": f"rate {best:.3g}",
    }


def run_landmarks(settings: dict[str, Any], seed: int) -> Measures:
    """Measure the accuracy for a number of landmarks and rows: the exact spectral contrastive optimum, no search."""
    X, y, X_test, y_test = prepared("mnist", settings["rows"], settings["test_rows"], seed)
    m = settings["landmarks"]
    model = KernelEmbedding(
        n_landmarks=m,
        n_components=min(m, 40),
        bandwidth="median",
        ridge=1e-3,
        image_shape=(28, 28),
        random_state=seed,
    )
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X)
        seconds = time.process_time() - start
        probe = linear_probe(model, X, y, X_test, y_test, labeled=500, random_state=seed)
    return {"accuracy": probe.accuracy, "fit seconds": seconds}
