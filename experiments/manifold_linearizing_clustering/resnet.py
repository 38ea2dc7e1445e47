"""The recipe of appendix D.2, for a GPU: a ResNet-18 on images of 32 x 32, 1000 epochs, then the heads alone.

`python -m experiments.manifold_linearizing_clustering.resnet IMAGES.npz CLUSTERS [--device cuda] [--checkpoint PATH]`,
IMAGES.npz having images X, of shape (n, 32, 32, 3) with numbers from 0 to 255 or 0 to 1, and classes y to score by.
"""

import argparse
from typing import Any

import numpy as np

from mercer import ManifoldClustering
from mercer.training import Recipe
from mercer.views import Blur, Chain, Colour, Crop, Flip, Gray

from .runs import scores

# As the appendix prints it. The strengths of the colour jitter are torchvision's names for the same four changes.
AUGMENTATION = Chain(
    [
        Crop(smallest=0.04),
        Flip(probability=0.5),
        Gray(probability=0.2),
        Colour(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
        Blur(probability=0.1),
    ]
)
START = Recipe(n_epochs=1000, batch_size=1024, optimizer="lars", learning_rate=0.3, warmup_epochs=10.0, keep="last")
# The appendix does not say for how many epochs; Figure 3 shows some tens.
SECOND = Recipe(
    n_epochs=50,
    batch_size=1024,
    optimizer="sgd",
    learning_rate=1e-2,
    momentum=0.9,
    weight_decay=5e-4,
    final_learning_rate=1e-2,
    keep="last",
)
SETTINGS: dict[str, Any] = {
    "backbone": "resnet18",
    "n_components": 128,
    "hidden": 4096,
    "affinity": "inner",
    "eta": 0.175,
    "epsilon_start": 0.2**0.5,
    "epsilon": 0.1**0.5,
    "gamma": 0.05,
    "agreement": 200.0,
    "n_views": 2,
    "freeze": True,
    "augment": AUGMENTATION,
    "result": "final",
    "max_rows": 10_000,
}


def clustering(n_clusters: int, **changed: Any) -> ManifoldClustering:
    """Return the estimator with the paper's settings, but for what is changed."""
    return ManifoldClustering(n_clusters, **{"start_recipe": START, "recipe": SECOND, **SETTINGS, **changed})


def main(arguments: list[str] | None = None) -> None:
    """Fit, and print accuracy and NMI after each stage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images")
    parser.add_argument("clusters", type=int)
    parser.add_argument("--device")
    parser.add_argument("--checkpoint")
    given = parser.parse_args(arguments)
    with np.load(given.images) as arrays:
        X, y = arrays["X"], arrays["y"]
    X = X.astype(np.float32) / (255.0 if X.dtype == np.uint8 else 1.0)
    model = clustering(given.clusters, device=given.device, checkpoint=given.checkpoint, random_state=0).fit(X)
    for stage, labels in (("start", model.start_labels_), ("final", model.final_labels_)):
        print(stage, {name: round(float(value), 4) for name, value in scores(y, labels).items()})


if __name__ == "__main__":
    main()
