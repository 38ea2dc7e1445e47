"""The tour: what Mercer does, on data that scikit-learn ships, in a minute."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mercer.blocks import as_tensor
from mercer.embedding.nystrom import Nystrom
from mercer.kernels import Laplace, median_distance
from mercer.mahalanobis import Mahalanobis
from mercer.plots import DiscriminantDisplay, EmbeddingDisplay, MetricDisplay
from mercer.plots.style import pyplot
from mercer.selection import Candidate, best, evaluate
from mercer.supervised.discriminant import KernelDiscriminant
from mercer.supervised.recursion import recursive_features

RIDGES = tuple(10.0**p for p in range(-5, 2))
N_ITER = 5


class Problem(NamedTuple):
    """A table with a target, split in two: one part to learn from, the other to see what was learned."""

    name: str
    feature_names: list[str]
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def run(out: Path, seed: int = 0) -> None:
    """Run the tour: progress and tables on the terminal, figures in the folder `out`."""
    console = Console()
    pyplot().switch_backend("agg")
    out.mkdir(parents=True, exist_ok=True)
    figures = [*learned_metric(console, out, seed), embedding(console, out, seed), discriminant(console, out, seed)]
    console.print("\nFigures, in the folder", style="bold")
    console.print(f"  {out.resolve()}", soft_wrap=True, highlight=False)
    for path in figures:
        console.print(f"    {path.name}", highlight=False)


def progress_bar(console: Console) -> Progress:
    """Return the progress bar of all steps."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    return Progress(*columns, TimeElapsedColumn(), console=console)


def made_table(seed: int) -> Problem:
    """A table of ten columns in which only x0 + x1 and x2 matter."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(1000, 10))
    y = np.tanh(2 * (X[:, 0] + X[:, 1])) + 0.5 * np.cos(2 * X[:, 2]) + 0.1 * random.normal(size=len(X))
    y -= y[:600].mean()
    names = [f"x{i}" for i in range(10)]
    return Problem("made: y = tanh(2(x0+x1)) + cos(2 x2)/2", names, X[:600], y[:600], X[600:], y[600:])


def wine_table(seed: int) -> Problem:
    """Thirteen measurements of wines of three cultivars; a column of -1 and 1 for each cultivar is the target."""
    wine = load_wine()
    classes = np.eye(3)[wine.target] * 2 - 1
    X, X_test, y, y_test = train_test_split(wine.data, classes, test_size=0.4, random_state=seed, stratify=wine.target)
    scaler = StandardScaler().fit(X)
    names = [name.replace("od280/od315_of_diluted_wines", "od280/od315") for name in wine.feature_names]
    return Problem("wine: three cultivars", names, scaler.transform(X), y, scaler.transform(X_test), y_test)


def fit_iterates(bar: Progress, problem: Problem) -> list[Candidate]:
    """Run a recursive feature machine and keep every iterate."""
    X, y = as_tensor(problem.X), as_tensor(problem.y)
    task = bar.add_task(problem.name, total=N_ITER + 1)
    iterates = []
    start = Laplace().resolved(X, random_state=0)
    for iterate in recursive_features(start, X, lambda kernel: best(evaluate(kernel, RIDGES, X, y)), n_iter=N_ITER):
        iterates.append(iterate)
        bar.advance(task)
    return iterates


def held_out_error(candidate: Candidate, problem: Problem) -> float:
    """Return the root mean square error on rows that the fit has not seen."""
    K = candidate.kernel_used().matrix(problem.X_test, problem.X)
    predictions = K @ candidate.fitted().alpha.numpy()
    return float(np.sqrt(np.mean((predictions - problem.y_test) ** 2)))


def learned_metric(console: Console, out: Path, seed: int) -> list[Path]:
    """Learn which inputs matter, and together with which, on a made table and on the wine data."""
    console.rule("[bold]A table: which inputs matter, and together with which?")
    problems = [made_table(seed), wine_table(seed)]
    with progress_bar(console) as bar:
        runs = [fit_iterates(bar, problem) for problem in problems]
    table = Table(title="root mean square error on held-out rows")
    table.add_column("table")
    for heading in ("plain kernel", "learned metric", "iterate chosen"):
        table.add_column(heading, justify="right")
    paths = []
    for problem, iterates in zip(problems, runs, strict=True):
        chosen = best(iterates)
        errors = (f"{held_out_error(candidate, problem):.3f}" for candidate in (iterates[0], chosen))
        table.add_row(problem.name, *errors, f"t = {chosen.about['iterate']} of {N_ITER}")
        display = MetricDisplay.from_metric(chosen.kernel_used().single_metric(), feature_names=problem.feature_names)
        display.ax_.set_title(problem.name, fontsize=10)
        paths.append(out / f"metric-{problem.name.split(':')[0]}.png")
        display.figure_.savefig(paths[-1], dpi=120)
    console.print(table)
    for problem, iterates in zip(problems, runs, strict=True):
        metric = best(iterates).kernel_used().single_metric()
        console.print(f"[bold]{problem.name}[/bold]")
        console.print(metric.summary(problem.feature_names, n_top=4), highlight=False)
    return paths


def embedding(console: Console, out: Path, seed: int) -> Path:
    """Embed the digits with landmarks, and see how well a linear classifier does on few labels."""
    console.rule("[bold]Images: a Nyström embedding of the digits")
    digits = load_digits()
    images = digits.data / 16.0
    train, test, y_train, y_test = train_test_split(
        images, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    few, _, y_few, _ = train_test_split(train, y_train, train_size=0.2, random_state=seed, stratify=y_train)
    nystrom = Nystrom(n_landmarks=400, n_components=100, landmarks="kmeans++", random_state=seed).fit(train)
    bandwidth = median_distance(train, Mahalanobis())
    contestants = {
        "raw pixels (64)": FunctionTransformer(),
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
            if transformer is not nystrom:
                transformer.fit(train)
            probe = RidgeClassifierCV(np.logspace(-4, 2, 13)).fit(transformer.transform(few), y_few)
            table.add_row(name, f"{probe.score(transformer.transform(test), y_test):.1%}")
            bar.advance(task)
    console.print(table)
    display = EmbeddingDisplay.from_features(nystrom.transform(images), digits.target, components=(1, 2))
    display.ax_.set_title("digits: second and third Nyström component", fontsize=10)
    path = out / "embedding-digits.png"
    display.figure_.savefig(path, dpi=120)
    return path


def discriminant(console: Console, out: Path, seed: int) -> Path:
    """Map the digits so that classes come apart, and see whether new images fall where the map says."""
    console.rule("[bold]Classes: a map on which they come apart")
    digits = load_digits()
    train, test, y_train, y_test = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    model = KernelDiscriminant(bandwidth="auto", random_state=seed)
    table = Table(title=f"accuracy on {len(test)} images that the fit has not seen")
    for heading in ("classifier", "accuracy", "log loss"):
        table.add_column(heading, justify="left" if heading == "classifier" else "right")
    with progress_bar(console) as bar:
        task = bar.add_task("discriminants", total=2)
        contestants = {"scikit-learn LDA": LinearDiscriminantAnalysis(), "Mercer KernelDiscriminant": model}
        for name, classifier in contestants.items():
            classifier.fit(train, y_train)
            loss = log_loss(y_test, classifier.predict_proba(test))
            table.add_row(name, f"{classifier.score(test, y_test):.1%}", f"{loss:.3f}")
            bar.advance(task)
    console.print(table)
    display = DiscriminantDisplay.from_estimator(model, test, y_test)
    path = out / "discriminants-digits.png"
    display.figure_.savefig(path, dpi=120)
    return path
