"""CIFAR-10 from pixels: the network, augmentations and optimizers of the paper on about a hundred images.

This shows that the whole recipe learns, but not what it can reach: the authors train on 50 000 images for 1000 epochs.
A step on 128 images takes about 20 s of one processor.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from experiments.data import drawn
from mercer import datasets
from mercer.metrics import clustering_accuracy
from mercer.papers import mlc
from mercer.papers.manifold_linearizing_clustering import SECOND, START

from .data import SHAPES
from .runs import Measures, scores


def run_pixels(settings: dict[str, Any], seed: int) -> Measures:
    """Return the first and last losses of both stages, the accuracy, and that of k-means on the pixels."""
    data = datasets.load("cifar10")
    X, y = drawn(data.X.reshape(len(data.X), -1), data.y, settings["rows"], seed)
    images = X.reshape(-1, *SHAPES["cifar10"]).astype(np.float32)
    batch = {"batch_size": settings["batch"]}
    model = mlc(
        len(np.unique(y)),
        hidden=512,
        start_recipe=replace(START, n_epochs=settings["start epochs"], **batch),
        recipe=replace(SECOND, n_epochs=settings["epochs"], **batch),
        random_state=seed,
    ).fit(images)
    losses = {stage: [r["loss"] for r in model.history_ if r["stage"] == stage] for stage in ("start", "final")}
    pixels = KMeans(len(np.unique(y)), n_init=10, random_state=seed).fit(X).labels_
    return {
        **scores(y, model.labels_),
        "k-means accuracy": clustering_accuracy(y, pixels),
        **{f"{stage}: {when} loss": losses[stage][i] for stage in losses for when, i in (("first", 0), ("last", -1))},
    }
