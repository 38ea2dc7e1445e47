"""Classification of real tables: Mercer's defaults compared with CatBoost, SVC, LightGBM and xRFM.

Run as `python -m benchmarks classes`, with the options of `python -m benchmarks tables`. Contestants are compared on
the same splits by the log loss of their probabilities, by accuracy, and by the expected calibration error.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import one_thread
from benchmarks.tables import (
    Fold,
    categorical,
    compare,
    folder,
    means,
    numbers_of,
    split,
    timed,
    with_kinds,
    with_words,
)
from mercer.metrics import mean_ranks

# Classes with fewer training rows than this are removed, since peers choose by folds that need some rows of each class.
FEWEST_OF_A_CLASS = 3
# Smaller probabilities are replaced by this before the log loss.
SMALLEST = 1e-6
# Bins of the expected calibration error.
BINS = 10

Outcome = dict[str, Any]


# ---- contestants: (training rows, classes, test rows, number of classes) -> seconds and test probabilities -----------


def fit_mercer(name: str, train: Any, y: np.ndarray, test: Any, n_classes: int) -> Outcome:
    """Fit an estimator of Mercer with its defaults, by `tabular`."""
    import warnings

    import mercer

    model = mercer.tabular(getattr(mercer, name)(random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: model.fit(train, y), lambda: model.predict_proba(test))


def fit_catboost(train: Any, y: np.ndarray, test: Any, n_classes: int) -> Outcome:
    """Fit CatBoost's defaults, with its own treatment of categories."""
    from catboost import CatBoostClassifier

    words = categorical(train)
    train, test = (with_words(part, words) for part in (train, test))
    model = CatBoostClassifier(verbose=0, thread_count=1, cat_features=words, allow_writing_files=False, random_seed=0)
    return timed(lambda: model.fit(train, y), lambda: model.predict_proba(test))


def fit_lightgbm(train: Any, y: np.ndarray, test: Any, n_classes: int) -> Outcome:
    """Fit LightGBM's defaults, with its own treatment of categories."""
    from lightgbm import LGBMClassifier

    train, test = with_kinds(train, test)
    model = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
    return timed(lambda: model.fit(train, y), lambda: np.asarray(model.predict_proba(test)))


def fit_svc(train: Any, y: np.ndarray, test: Any, n_classes: int) -> Outcome:
    """Fit scikit-learn's support vector machine on standardized columns, with probabilities by cross-validation."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, X_test = numbers_of(train, test)
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC(C=10)), ensemble=False, cv=3)
    return timed(lambda: model.fit(X, y), lambda: model.predict_proba(X_test))


def fit_xrfm(train: Any, y: np.ndarray, test: Any, n_classes: int) -> Outcome:
    """Fit xRFM's defaults as its README does: standardized columns and a fifth of the rows for validation."""
    import torch
    from sklearn.model_selection import train_test_split
    from xrfm import xRFM

    X, X_test = numbers_of(train, test)
    mean, std = X.mean(axis=0), X.std(axis=0)
    X, X_test = (((part - mean) / np.where(std > 0, std, 1.0)).astype(np.float32) for part in (X, X_test))
    targets = np.eye(n_classes, dtype=np.float32)[y]
    X, X_val, t, t_val = train_test_split(X, targets, test_size=0.2, random_state=0)
    model = xRFM(device=torch.device("cpu"), tuning_metric="brier", random_state=0, verbose=False)
    return timed(
        lambda: model.fit(X, t, X_val, t_val), lambda: np.asarray(model.predict_proba(X_test), dtype=np.float64)
    )


CONTESTANTS: dict[str, Callable[..., Outcome]] = {
    "RFMClassifier": lambda *parts: fit_mercer("RFMClassifier", *parts),
    "CatBoost": fit_catboost,
    "SVC": fit_svc,
    "LightGBM": fit_lightgbm,
    "xRFM": fit_xrfm,
    "GPClassifier": lambda *parts: fit_mercer("GPClassifier", *parts),
    "KernelDiscriminant": lambda *parts: fit_mercer("KernelDiscriminant", *parts),
}


# ---- scores ---------------------------------------------------------------------------------------------------------


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log loss, with the smallest probabilities bounded below."""
    bounded = np.clip(probabilities, SMALLEST, None)
    bounded /= bounded.sum(axis=1, keepdims=True)
    return float(-np.log(bounded[np.arange(len(y)), y]).mean())


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the expected calibration error: the mean difference of confidence and accuracy over bins of confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(float((right[place == b] - confidence[place == b]).sum())) for b in range(BINS)]
    return sum(gaps) / len(y)


# ---- runs -----------------------------------------------------------------------------------------------------------


def classes_of_fold(table: str, fold: int, most_rows: int) -> tuple[Fold, int]:
    """Return one fold of one table, with classes as numbers from 0, and the number of classes."""
    import pandas as pd

    train, test = split(pd.read_parquet(folder() / f"{table}.parquet"), fold, most_rows)
    counts = train.target.value_counts()
    classes = np.sort(counts.index[counts >= FEWEST_OF_A_CLASS].to_numpy())
    train, test = (part[part.target.isin(classes)] for part in (train, test))
    y, truth = (np.searchsorted(classes, part.target.to_numpy()) for part in (train, test))
    return Fold(train.drop(columns="target"), y, test.drop(columns="target"), truth), len(classes)


def run(table: str, fold: int, method: str, most_rows: int) -> Outcome:
    """Fit one contestant on one fold of one table."""
    (train, y, test, truth), n_classes = classes_of_fold(table, fold, most_rows)
    with one_thread():
        outcome = CONTESTANTS[method](train, y, test, n_classes)
    p = outcome.pop("prediction")
    scores = {"log_loss": log_loss(p, truth), "accuracy": float(np.mean(p.argmax(axis=1) == truth))}
    scores["calibration_error"] = calibration_error(p, truth)
    return {"n": len(y), "classes": n_classes, **scores, **outcome}


def main(argv: list[str] | None = None) -> int:
    """Run the selected tables and contestants, and print the comparison."""
    line = "{table:24} {fold} {method:18} log loss {log_loss:.4f}, accuracy {accuracy:.3f} in {seconds:.1f} s"
    return compare("classes", "class", CONTESTANTS, run, line, summary, argv)


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the comparison: ranks, means, and how often a method is no worse, or much worse, than CatBoost."""
    losses, accuracies = means(lines, "log_loss"), means(lines, "accuracy")
    errors, seconds = means(lines, "calibration_error"), means(lines, "seconds")
    ranks = mean_ranks(losses)
    by_accuracy = mean_ranks({m: {t: -v for t, v in tables.items()} for m, tables in accuracies.items()})
    base, base_seconds = losses.get("CatBoost", {}), seconds.get("CatBoost", {})
    rows = []
    for method in losses:
        shared = [t for t in losses[method] if t in base]
        ratios = [seconds[method][t] / base_seconds[t] for t in shared]
        no_worse = sum(losses[method][t] <= base[t] for t in shared)
        far_above = [t for t in shared if losses[method][t] > max(2 * base[t], base[t] + 0.05)]
        rows.append(
            (
                method,
                f"{ranks[method]:.2f}",
                f"{np.mean(list(losses[method].values())):.3f}",
                f"{no_worse} of {len(shared)}",
                str(len(far_above)),
                f"{by_accuracy[method]:.2f}",
                f"{np.mean(list(accuracies[method].values())):.3f}",
                f"{np.mean(list(errors[method].values())):.3f}",
                f"{np.median(ratios) if ratios else np.nan:.2f}",
                f"{sum(seconds[method].values()):.0f}",
            )
        )
    columns = (
        "rank, log loss",
        "log loss",
        "no worse than CatBoost",
        "far above it",
        "rank, accuracy",
        "accuracy",
        "calibration error",
        "median time ratio",
        "seconds",
    )
    return {"tables": len(next(iter(losses.values()))), "columns": columns, "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
