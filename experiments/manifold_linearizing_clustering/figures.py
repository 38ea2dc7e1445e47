"""Figures 1, 3, 4 and 5 of the paper: the sphere, rates and ranks over epochs, cosines by cluster, principal samples.

Run `python -m experiments.manifold_linearizing_clustering.figures FOLDER [ONLY]`. It fits models for some minutes.
"""

import sys
from functools import lru_cache
from typing import Any

from experiments.data import drawn
from experiments.figures import write_figures
from mercer import ManifoldClustering, datasets
from mercer.plots import PrincipalSamplesDisplay, RatesDisplay, SimilarityDisplay, SphereDisplay
from mercer.plots.style import pyplot
from mercer.training import Recipe

from .cases import READINGS, TO_THE_END, TOY
from .data import SHAPES, Samples, samples_of, two_manifolds
from .runs import fitted

ROWS, CLUSTERS, SEED = 2000, 10, 0


@lru_cache(maxsize=1)
def images() -> Samples:
    """Return scattering features of MNIST, as in the experiment."""
    return samples_of("mnist", ROWS, SEED)


@lru_cache(maxsize=2)
def model_of_images(stage: str) -> ManifoldClustering:
    """Return the default estimator, fitted to these images, that returns the result of a stage."""
    return fitted(images(), {"n_clusters": CLUSTERS, "result": stage}, SEED)[0]


def sphere() -> Any:
    """Draw Figure 1: the samples, and their features at random weights, after the start and after the second stage."""
    samples = two_manifolds(READINGS["deviation .05"], SEED)
    untrained = {**TO_THE_END, "n_epochs": 1, "learning_rate": 1e-12}
    before = ManifoldClustering(
        **{**TOY, "start_recipe": Recipe(**untrained), "recipe": Recipe(**untrained)}, result="start", random_state=SEED
    ).fit(samples.X)
    stages = {stage: fitted(samples, TOY | {"result": stage}, SEED)[0] for stage in ("start", "final")}
    points = {
        "samples": samples.X,
        "random weights": before.transform(samples.X),
        "after the start": stages["start"].transform(samples.X),
        "after the second stage": stages["final"].transform(samples.X),
    }
    return SphereDisplay(points, samples.y).plot().figure_


def rates() -> Any:
    """Draw Figure 3: coding rates and the ranks of clusters over the epochs of both stages."""
    return RatesDisplay.from_estimator(model_of_images("final")).plot().figure_


def similarity() -> Any:
    """Draw Figure 4: cosines of features sorted by class, after the start and after the second stage."""
    figure, axes = pyplot().subplots(1, 2, figsize=(11, 5), layout="constrained")
    titles = {"start": "|cosine| after the start", "final": "after the second stage"}
    for ax, (stage, title) in zip(axes, titles.items(), strict=True):
        features = model_of_images(stage).transform(images().X)
        SimilarityDisplay(features, images().y, by="class").plot(ax, title=title)
    return figure


def principal() -> Any:
    """Draw Figure 5: the images nearest to the first principal directions of each cluster."""
    data = datasets.load("mnist")
    pixels, _ = drawn(data.X.reshape(len(data.X), -1), data.y, ROWS, SEED)
    model = model_of_images("final")
    features = model.transform(images().X)
    return PrincipalSamplesDisplay(pixels, features, model.labels_, image_shape=SHAPES["mnist"]).plot().figure_


FIGURES = {"figure-1": sphere, "figure-3": rates, "figure-4": similarity, "figure-5": principal}


if __name__ == "__main__":
    write_figures(FIGURES, sys.argv[1:])
