"""The recipe of appendix D.2, for a GPU: a ResNet-18 on images of 32 x 32, 1000 epochs, then the heads alone.

Run `python -m experiments.manifold_linearizing_clustering.resnet IMAGES.npz CLUSTERS [--device cuda]
[--checkpoint PATH]`. IMAGES.npz holds images X, of shape (n, 32, 32, 3) with numbers from 0 to 255 or from 0 to 1, and
the classes y for the scores.
"""

import argparse

import numpy as np

from mercer.papers import mlc

from .runs import scores


def main(arguments: list[str] | None = None) -> None:
    """Fit the model, and print accuracy and NMI after each stage."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images")
    parser.add_argument("clusters", type=int)
    parser.add_argument("--device")
    parser.add_argument("--checkpoint")
    given = parser.parse_args(arguments)
    with np.load(given.images) as arrays:
        X, y = arrays["X"], arrays["y"]
    X = X.astype(np.float32) / (255.0 if X.dtype == np.uint8 else 1.0)
    model = mlc(given.clusters, device=given.device, checkpoint=given.checkpoint, random_state=0).fit(X)
    for stage, labels in (("start", model.start_labels_), ("final", model.final_labels_)):
        print(stage, {name: round(float(value), 4) for name, value in scores(y, labels).items()})


if __name__ == "__main__":
    main()
