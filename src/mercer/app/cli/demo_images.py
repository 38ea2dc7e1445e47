"""The images of `mercer demo`: embeddings of the digits, and how well a linear classifier does on them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer

from mercer.app.cli.figures import write_figure
from mercer.app.cli.output import new_table, progress
from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.embedding.kernel_embedding import KernelEmbedding
from mercer.embedding.nystrom import Nystrom
from mercer.embedding.steps import Steps
from mercer.kernels import median_distance
from mercer.mahalanobis import Mahalanobis
from mercer.plots import DiscriminantDisplay, EmbeddingDisplay
from mercer.plots.style import pyplot
from mercer.training import Adam

# All digits of scikit-learn.
N_IMAGES = 1797
LANDMARKS, COMPONENTS = 400, 100
# Coordinates of the embedding that is trained by steps.
FEW_COMPONENTS = 64
STEPS = Steps(epochs=40, optimizer=Adam(0.02))
NO_STEPS = Steps(epochs=1, optimizer=Adam(1e-12))
# The share of the training images that have labels.
LABELED = 0.1
DPI = 120


class Digits(NamedTuple):
    """Training images (`train`), the few of them whose labels are used (`few`), and test images."""

    train: np.ndarray
    y_train: np.ndarray
    few: np.ndarray
    y_few: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


def split_digits(seed: int) -> Digits:
    """Return scikit-learn's digits, half of them for training."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:N_IMAGES] / 16.0, y[:N_IMAGES]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    few, _, y_few, _ = train_test_split(train, y_train, train_size=LABELED, random_state=seed, stratify=y_train)
    return Digits(train, y_train, few, y_few, test, y_test)


def probe_table(digits: Digits, contestants: dict[str, Any]) -> Any:
    """Return a table of the accuracy that a linear classifier with few labels reaches on the features of each."""
    title = f"Linear classifier on {len(digits.few)} labels, {len(digits.test)} test images"
    table = new_table("features", "accuracy", title=title)
    with progress() as steps:
        task = steps.add_task("embedding", total=len(contestants))
        for name, transformer in contestants.items():
            transformer.fit(digits.train)
            probe = RidgeClassifierCV(np.logspace(-4, 2, 13)).fit(transformer.transform(digits.few), digits.y_few)
            table.add_row(name, f"{probe.score(transformer.transform(digits.test), digits.y_test):.1%}")
            steps.advance(task)
    return table


def embedding(console: Console, out: Path, seed: int) -> list[Path]:
    """Embed the digits with landmarks, and measure how well a linear classifier does with few labels."""
    digits = split_digits(seed)
    nystrom = Nystrom(n_landmarks=LANDMARKS, n_components=COMPONENTS, landmarks="kmeans++", random_state=seed)
    gamma = 0.5 / median_distance(digits.train, Mahalanobis()) ** 2
    contestants = {
        "raw pixels (64)": FunctionTransformer(),
        "PCA (32)": PCA(32, random_state=seed),
        f"scikit-learn Nystroem ({COMPONENTS})": Nystroem(gamma=gamma, n_components=COMPONENTS, random_state=seed),
        f"Mercer Nystrom ({COMPONENTS} of {LANDMARKS} landmarks)": nystrom,
    }
    console.print(probe_table(digits, contestants))
    display = EmbeddingDisplay.from_features(nystrom.transform(digits.test), digits.y_test, components=(1, 2))
    display.ax_.set_title("digits: second and third Nyström component", fontsize=10)
    path = out / "embedding-digits.png"
    write_figure(display.figure_, path, DPI)
    return [path]


def training(console: Console, out: Path, seed: int) -> list[Path]:
    """Train an embedding by steps, and compare it with its start and with the exact optimum of another loss."""
    digits = split_digits(seed)
    shared: dict[str, Any] = {
        "n_components": FEW_COMPONENTS,
        "n_landmarks": LANDMARKS,
        "image_shape": (8, 8),
        "random_state": seed,
    }
    start, trained = (KernelEmbedding("simclr", solver=steps, **shared) for steps in (NO_STEPS, STEPS))
    exact = KernelEmbedding("spectral_contrastive", **shared)
    contestants = {
        "the start: principal components": start,
        f"SimCLR, {STEPS.epochs} epochs from there": trained,
        "spectral contrastive loss, exactly": exact,
    }
    console.print(probe_table(digits, contestants))
    figure, axes = pyplot().subplots(1, 2, figsize=(11, 5), layout="constrained")
    titles = {"principal components": start, "spectral contrastive loss": exact}
    for ax, (title, model) in zip(axes, titles.items(), strict=True):
        EmbeddingDisplay.from_features(model.transform(digits.test), digits.y_test, ax=ax)
        ax.set_title(f"digits: {title}", fontsize=10)
    path = out / "training-digits.png"
    write_figure(figure, path, DPI)
    return [path]


def discriminant(console: Console, out: Path, seed: int) -> list[Path]:
    """Map the digits so that classes are separated, and measure how well new images are classified on the map."""
    digits = split_digits(seed)
    model = KernelDiscriminant(random_state=seed)
    table = new_table("classifier", "accuracy", "log loss", title=f"On {len(digits.test)} images not seen by the fit")
    contestants = {"scikit-learn LDA": LinearDiscriminantAnalysis(), "Mercer KernelDiscriminant": model}
    with progress() as steps:
        task = steps.add_task("discriminants", total=len(contestants))
        for name, classifier in contestants.items():
            classifier.fit(digits.train, digits.y_train)
            loss = log_loss(digits.y_test, classifier.predict_proba(digits.test))
            table.add_row(name, f"{classifier.score(digits.test, digits.y_test):.1%}", f"{loss:.3f}")
            steps.advance(task)
    console.print(table)
    display = DiscriminantDisplay.from_estimator(model, digits.test, digits.y_test)
    path = out / "discriminants-digits.png"
    write_figure(display.figure_, path, DPI)
    return [path]
