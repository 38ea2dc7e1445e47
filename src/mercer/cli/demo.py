"""The tour: what Mercer does, on data that scikit-learn ships, in a minute."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.blocks import as_tensor
from mercer.embedding.nystrom import Nystrom
from mercer.kernels import Laplace
from mercer.plots import EmbeddingDisplay, MetricDisplay
from mercer.plots.style import pyplot
from mercer.selection import Candidate, best
from mercer.supervised.recursion import recursive_features

RIDGES = tuple(10.0**p for p in range(-5, 2))
N_ITER = 5


def run(out: Path, seed: int = 0) -> None:
    """Run the tour: progress and tables on the terminal, figures in the folder `out`."""
    console = Console()
    pyplot().switch_backend("agg")
    out.mkdir(parents=True, exist_ok=True)
    learned_metric(console, out, seed)
    embedding(console, out, seed)
    console.print(f"\nFigures are in [bold]{out.resolve()}[/bold]")


def progress_bar(console: Console) -> Progress:
    """Return the progress bar of all steps."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(), console=console,
    )  # fmt: skip


def ring_of_two(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of d columns in which only x0 + x1 and x2 matter."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, d))
    return X, np.tanh(2 * (X[:, 0] + X[:, 1])) + 0.5 * np.cos(2 * X[:, 2]) + 0.1 * random.normal(size=n)


def fit_iterates(bar: Progress, name: str, X: np.ndarray, Y: np.ndarray, criterion: str) -> list[Candidate]:
    """Run a recursive feature machine and keep every iterate."""
    kernel = Laplace().resolved(X, random_state=0)
    task = bar.add_task(name, total=N_ITER + 1)
    iterates = []
    for iterate in recursive_features(
        kernel, as_tensor(X), as_tensor(Y), RIDGES, n_iter=N_ITER, criterion=criterion
    ):
        iterates.append(iterate)
        bar.advance(task)
    return iterates


def learned_metric(console: Console, out: Path, seed: int) -> None:
    """Learn which inputs matter, and together with which, on a made table and on the wine data."""
    console.rule("[bold]A table: which inputs matter, and together with which?")
    X, y = ring_of_two(600, 10, seed)
    wine = load_wine()
    W, classes = StandardScaler().fit_transform(wine.data), np.eye(3)[wine.target] * 2 - 1
    with progress_bar(console) as bar:
        made = fit_iterates(bar, "y = tanh(2(x0+x1)) + cos(2 x2)/2 + noise", X, y - y.mean(), "squared_error")
        real = fit_iterates(bar, "wine: three cultivars, 13 columns", W, classes, "squared_error")
    table = Table(title="leave-one-out error of each iterate (root mean square), all rows used")
    table.add_column("data")
    for t in range(N_ITER + 1):
        table.add_column("no metric" if t == 0 else f"t = {t}", justify="right")
    for name, iterates in (("made", made), ("wine", real)):
        chosen = best(iterates)
        table.add_row(
            name,
            *(f"[bold]{(-c.score) ** 0.5:.3f}[/bold]" if c is chosen else f"{(-c.score) ** 0.5:.3f}" for c in iterates),
        )
    console.print(table)
    metrics = [best(iterates).kernel.single_metric() for iterates in (made, real)]
    console.print(metrics[0].summary(n_features=10, n_top=4), highlight=False)
    console.print(metrics[1].summary(wine.feature_names, n_top=6), highlight=False)
    figure, axes = pyplot().subplots(1, 2, figsize=(12, 5), layout="constrained")
    MetricDisplay.from_metric(metrics[0], feature_names=[f"x{i}" for i in range(10)], ax=axes[0])
    axes[0].set_title("made table: only x0 + x1 and x2 matter")
    MetricDisplay.from_metric(metrics[1], feature_names=wine.feature_names, ax=axes[1])
    axes[1].set_title("wine: the chemistry that tells three cultivars apart")
    figure.savefig(out / "learned-metric.png", dpi=120)


def embedding(console: Console, out: Path, seed: int) -> None:
    """Embed the digits with landmarks, and see how well a linear classifier does on few labels."""
    console.rule("[bold]Images: a Nyström embedding of the digits")
    digits = load_digits()
    train, test, y_train, y_test = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    few, _, y_few, _ = train_test_split(train, y_train, train_size=0.2, random_state=seed, stratify=y_train)
    nystrom = Nystrom(n_landmarks=400, n_components=100, landmarks="kmeans++", random_state=seed)
    bandwidth = Nystrom(n_landmarks=1, random_state=seed).fit(train).kernel_.bandwidth
    contestants = {
        "raw pixels (64)": StandardScaler(),
        "PCA (32)": PCA(32, random_state=seed),
        "scikit-learn Nystroem (100)": Nystroem(gamma=0.5 / bandwidth**2, n_components=100, random_state=seed),
        "Mercer Nystrom (100 of 400 landmarks)": nystrom,
    }
    table = Table(title=f"accuracy of a linear classifier given {len(few)} labels, on {len(test)} other images")
    table.add_column("features")
    table.add_column("accuracy", justify="right")
    with progress_bar(console) as bar:
        task = bar.add_task("embedding", total=len(contestants))
        for name, transformer in contestants.items():
            transformer.fit(train)
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            probe.fit(transformer.transform(few), y_few)
            table.add_row(name, f"{probe.score(transformer.transform(test), y_test):.1%}")
            bar.advance(task)
    console.print(table)
    features = nystrom.transform(digits.data / 16.0)
    display = EmbeddingDisplay.from_features(features, digits.target, components=(1, 2))
    display.ax_.set_title("digits: second and third Nyström component")
    display.figure_.savefig(out / "digits-embedding.png", dpi=120)
