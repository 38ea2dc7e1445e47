"""The tables of `mercer demo`: a learned metric, and predictions with intervals."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_diabetes, load_wine, make_friedman1
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.app.cli.figures import write_figure
from mercer.app.cli.output import bar, indented, new_table, progress, waiting
from mercer.blocks import as_tensor
from mercer.kernels import Laplace
from mercer.metrics import coverage, negative_log_likelihood
from mercer.plots import IntervalDisplay, MetricDisplay
from mercer.selection import Candidate, best, evaluate
from mercer.tabular_models.gp import GPRegressor
from mercer.tabular_models.recursion import recursive_features

RIDGES = tuple(10.0**p for p in range(-5, 2))
N_ITER = 5
ROWS, TEST_ROWS = 600, 400
GP_OPTIONS: dict[str, Any] = {}
MOST_INPUTS = 6
FRIEDMAN_ROWS = 400
DPI = 120


class Problem(NamedTuple):
    """A table with a target, split into a part to learn from and a part to score on."""

    name: str
    feature_names: list[str]
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def made_table(seed: int) -> Problem:
    """Return a made table of ten columns, of which only x0 + x1 and x2 matter."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(ROWS + TEST_ROWS, 10))
    y = np.tanh(2 * (X[:, 0] + X[:, 1])) + 0.5 * np.cos(2 * X[:, 2]) + 0.1 * random.normal(size=len(X))
    y -= y[:ROWS].mean()
    names = [f"x{i}" for i in range(10)]
    return Problem("made: y = tanh(2(x0+x1)) + cos(2 x2)/2", names, X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:])


def wine_table(seed: int) -> Problem:
    """Return thirteen measurements of wines; the target has a column of -1 and 1 for each of three cultivars."""
    wine = load_wine()
    classes = np.eye(3)[wine.target] * 2 - 1
    X, X_test, y, y_test = train_test_split(wine.data, classes, test_size=0.4, random_state=seed, stratify=wine.target)
    scaler = StandardScaler().fit(X)
    names = [name.replace("od280/od315_of_diluted_wines", "od280/od315") for name in wine.feature_names]
    return Problem("wine: three cultivars", names, scaler.transform(X), y, scaler.transform(X_test), y_test)


def fit_iterates(steps: Progress, problem: Problem) -> list[Candidate]:
    """Run a recursive feature machine, and return all of its iterates."""
    X, y = as_tensor(problem.X), as_tensor(problem.y)
    task = steps.add_task(problem.name, total=N_ITER + 1)
    iterates = []
    start = Laplace().resolved(X, random_state=0)
    for iterate in recursive_features(start, X, lambda kernel: best(evaluate(kernel, RIDGES, X, y)), n_iter=N_ITER):
        iterates.append(iterate)
        steps.advance(task)
    return iterates


def held_out_error(candidate: Candidate, problem: Problem) -> float:
    """Return the root mean square error on rows that the fit has not seen."""
    K = candidate.kernel_used().matrix(problem.X_test, problem.X)
    predictions = K @ candidate.fitted().alpha.numpy()
    return float(np.sqrt(np.mean((predictions - problem.y_test) ** 2)))


def learned_metric(console: Console, out: Path, seed: int) -> list[Path]:
    """Learn which inputs matter, and together with which, on a made table and on the wine data."""
    problems = [made_table(seed), wine_table(seed)]
    with progress() as steps:
        runs = [fit_iterates(steps, problem) for problem in problems]
    table = new_table(
        "table", "plain kernel", "learned metric", "iterate", title="Root mean square error on rows left out"
    )
    paths = []
    for problem, iterates in zip(problems, runs, strict=True):
        chosen = best(iterates)
        errors = (f"{held_out_error(candidate, problem):.3f}" for candidate in (iterates[0], chosen))
        table.add_row(problem.name, *errors, f"{chosen.about['iterate']} of {N_ITER}")
        display = MetricDisplay.from_metric(chosen.kernel_used().single_metric(), feature_names=problem.feature_names)
        display.ax_.set_title(problem.name, fontsize=10)
        paths.append(out / f"metric-{problem.name.split(':')[0]}.png")
        write_figure(display.figure_, paths[-1], DPI)
    console.print(table)
    for problem, iterates in zip(problems, runs, strict=True):
        metric = best(iterates).kernel_used().single_metric()
        console.print(problem.name, style="bold")
        console.print(metric.summary(problem.feature_names, n_top=4))
    return paths


def diabetes_table(seed: int) -> Problem:
    """Return ten measurements of patients; the target is how far their diabetes has progressed a year later."""
    data = load_diabetes(scaled=False)
    X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.4, random_state=seed)
    return Problem("diabetes", list(data.feature_names), X, y, X_test, y_test)


def friedman_table(seed: int) -> Problem:
    """Return ten columns, and Friedman's function of five of them with noise of standard deviation 1."""
    X, y = make_friedman1(FRIEDMAN_ROWS, noise=1.0, random_state=seed)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
    return Problem("friedman", [f"x{i}" for i in range(10)], X, y, X_test, y_test)


def intervals(console: Console, out: Path, seed: int) -> list[Path]:
    """Predict with intervals, measure how many targets they hold, and show which inputs count."""
    table = new_table("table", "model", "RMSE", "NLL", "in 90 % intervals", title="On rows left out")
    table.columns[1].justify = "left"
    paths = []
    for problem in (diabetes_table(seed), friedman_table(seed)):
        process = GPRegressor(**GP_OPTIONS, random_state=seed)
        models = {"BayesianRidge": make_pipeline(StandardScaler(), BayesianRidge()), "GPRegressor": process}
        for name, model in models.items():
            with waiting(f"{problem.name}: {name}"):
                mean, std = model.fit(problem.X, problem.y).predict(problem.X_test, return_std=True)
            scores = interval_scores(problem.y_test, mean, std)
            table.add_row(f"{problem.name}, {len(problem.y)} rows", name, *scores)
        display = IntervalDisplay.from_estimator(process, problem.X_test, problem.y_test, name=problem.name)
        paths.append(out / f"intervals-{problem.name}.png")
        write_figure(display.figure_, paths[-1], DPI)
    console.print(table)
    console.print("friedman: y is a function of x0 to x4; what the process finds", style="bold")
    console.print(indented(share_table(problem.feature_names, process.feature_importances_, console)))
    return paths


def interval_scores(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> tuple[str, str, str]:
    """Return RMSE, negative log likelihood and the share of targets in their intervals as text for the table."""
    error = float(np.sqrt(np.mean((mean - y) ** 2)))
    return f"{error:.2f}", f"{negative_log_likelihood(y, mean, std):.3f}", f"{coverage(y, mean, std):.1%}"


def share_table(names: list[str], importances: np.ndarray, console: Console) -> Any:
    """Return a table of the inputs that count most, with their shares as numbers and bars."""
    table = new_table("input", "share", "", box=None, pad_edge=False)
    table.columns[2].justify = "left"
    for i in np.argsort(-importances)[:MOST_INPUTS]:
        table.add_row(names[i], f"{importances[i]:.1%}", bar(float(importances[i]), console))
    return table
