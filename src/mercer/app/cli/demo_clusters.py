"""The clusterings of `mercer demo`: images that express each other, and two manifolds that a network makes linear."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from mercer.app.cli.figures import write_figure
from mercer.app.cli.output import new_table, waiting
from mercer.clustering.manifold.manifold_clustering import ManifoldClustering
from mercer.clustering.subspace.subspace_clustering import SubspaceClustering
from mercer.metrics import clustering_accuracy
from mercer.plots import AffinityDisplay, SphereDisplay
from mercer.training import Recipe

N_IMAGES = 600
# Points on each manifold, number and height of the waves of the circle, and standard deviation of the noise.
N_POINTS, WAVES, HEIGHT, NOISE = 100, 5, 0.2, 0.05
START_EPOCHS, EPOCHS = 60, 100
DPI = 120


def cluster_table(title: str, X: np.ndarray, y: np.ndarray, contestants: dict[str, Any]) -> Any:
    """Return a table of how well clusters agree with the classes, which no clustering is given."""
    table = new_table("clustering", "accuracy", "NMI", title=title)
    for name, model in contestants.items():
        with waiting(f"clustering by {name}"):
            labels = model.fit(X).labels_
        score = normalized_mutual_info_score(y, labels)
        table.add_row(name, f"{clustering_accuracy(y, labels):.1%}", f"{score:.3f}")
    return table


def subspaces(console: Console, out: Path, seed: int) -> list[Path]:
    """Cluster the digits by which of them express each other."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.RandomState(seed).permutation(len(X))[:N_IMAGES]
    X, y = X[rows] / 16.0, y[rows]
    model = SubspaceClustering(10, random_state=seed)
    contestants = {"k-means": KMeans(10, n_init=10, random_state=seed), "Mercer SubspaceClustering": model}
    console.print(cluster_table(f"{len(X)} digits in ten clusters, beside their classes", X, y, contestants))
    display = AffinityDisplay.from_estimator(model, y)
    path = out / "affinity-digits.png"
    write_figure(display.figure_, path, DPI)
    return [path]


def two_manifolds(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy points of a wavy circle on the sphere and of the pole, and a label for each: 0 circle, 1 pole."""
    phi = 2 * np.pi * np.arange(N_POINTS) / N_POINTS
    height = HEIGHT * np.sin(WAVES * phi)
    circle = np.stack([np.cos(height) * np.cos(phi), np.cos(height) * np.sin(phi), np.sin(height)], axis=1)
    X = np.vstack([circle, np.tile([0.0, 0.0, 1.0], (N_POINTS, 1))])
    return X + NOISE * np.random.RandomState(seed).normal(size=X.shape), np.repeat([0, 1], N_POINTS)


def manifolds(console: Console, out: Path, seed: int) -> list[Path]:
    """Cluster the two manifolds, and draw the features that the network has learned."""
    X, y = two_manifolds(seed)
    start, recipe = (Recipe(n_epochs=n, batch_size=512, learning_rate=5e-3) for n in (START_EPOCHS, EPOCHS))
    model = ManifoldClustering(
        2, n_components=3, hidden=100, augment="noise", start_recipe=start, recipe=recipe, random_state=seed
    )
    contestants = {"k-means": KMeans(2, n_init=10, random_state=seed), "Mercer ManifoldClustering": model}
    console.print(cluster_table(f"{len(X)} points of a circle and of a pole", X, y, contestants))
    display = SphereDisplay.from_estimators({"features": model}, X, np.where(y == 0, "circle", "pole"))
    path = out / "manifolds.png"
    write_figure(display.figure_, path, DPI)
    return [path]
