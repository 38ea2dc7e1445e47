"""Gaussian process classification of small tables: log loss and CPU seconds of GPClassifier and of scikit-learn's.

Run as `python -m benchmarks gp_classifier [--only TABLES] [--methods NAMES] [--quick] [--out DIR]`. The tables are
those of `classes` with fewer than 500 training rows, on fold 0. All contestants run on one thread and get the same
standardized columns (indicators for categories, medians for missing values). scikit-learn's
`GaussianProcessClassifier` has a Gaussian kernel with one length scale, the same from three starts, or with one length
scale for each column. "same model" is `GPClassifier("gaussian", "identity", warp="none")`, with the first of these
kernels; "default" searches kernels, warps and metrics. The bounds are: on no table a higher log loss than
scikit-learn's first, and a fifth of the seconds.
"""

import statistics
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, text, verdict
from benchmarks.classes import classes_of_fold, log_loss
from benchmarks.contestants import one_thread
from benchmarks.journal import Journal
from benchmarks.tables import MOST_TRAIN, cases, numbers_of
from experiments.report import print_table

MOST_ROWS = 500
# If a fit takes fewer seconds than this, it is repeated and the median is taken.
REPEATS, QUICK_FIT = 3, 2.0
# scikit-learn keeps n^2 numbers for the derivative by each length scale. With more columns than this, a fit takes many
# minutes.
MOST_LENGTH_SCALES = 100
TIMES_FASTER, MOST_LOST = 5.0, 0.0

OURS = ("GPClassifier, default", "GPClassifier, same model")
THEIRS = ("scikit-learn", "scikit-learn, 3 starts", "scikit-learn, a scale a column")


def contestant(method: str, n_columns: int) -> Any:
    """Return an estimator by its name; None if it would take too long."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    import mercer

    match method:
        case "GPClassifier, default":
            return mercer.GPClassifier(random_state=0)
        case "GPClassifier, same model":
            return mercer.GPClassifier("gaussian", "identity", warp="none", random_state=0)
        case "scikit-learn":
            return GaussianProcessClassifier(1.0 * RBF(1.0), random_state=0)
        case "scikit-learn, 3 starts":
            return GaussianProcessClassifier(1.0 * RBF(1.0), n_restarts_optimizer=2, random_state=0)
        case "scikit-learn, a scale a column":
            if n_columns > MOST_LENGTH_SCALES:
                return None
            return GaussianProcessClassifier(1.0 * RBF(np.ones(n_columns)), random_state=0)
    raise SystemExit(f"unknown contestant {method!r}; there are {[*OURS, *THEIRS]}")


def run(table: str, method: str) -> dict[str, Any]:
    """Fit one contestant on fold 0 of one table; seconds and log loss are missing if it would take too long."""
    from sklearn.preprocessing import StandardScaler

    (train, y, test, truth), n_classes = classes_of_fold(table, 0, MOST_TRAIN)
    X, X_test = numbers_of(train, test)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    facts = {"n": len(y), "columns": X.shape[1], "classes": n_classes, "seconds": None, "log_loss": None}
    model = contestant(method, X.shape[1])
    if model is None:
        return facts
    seconds: list[float] = []
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not seconds or (len(seconds) < REPEATS and seconds[0] < QUICK_FIT):
            start = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - start)
        probabilities = model.predict_proba(X_test)
    return {**facts, "seconds": statistics.median(seconds), "log_loss": log_loss(probabilities, truth)}


def small_tables(only: list[str]) -> list[str]:
    """Return the class tables with fewer than 500 training rows."""
    return [
        table for table, _ in cases(only, "one", "class") if len(classes_of_fold(table, 0, MOST_TRAIN)[0].y) < MOST_ROWS
    ]


def judge(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on the log loss relative to scikit-learn's first, and on the seconds relative to each."""
    found = {(line["table"], line["method"]): line for line in lines if line["seconds"] is not None}
    tables = list(dict.fromkeys(line["table"] for line in lines))
    claims = []
    for ours in OURS:
        for theirs in THEIRS:
            pairs = [(found[t, ours], found[t, theirs]) for t in tables if (t, ours) in found and (t, theirs) in found]
            if theirs == THEIRS[0]:
                lost = max((a["log_loss"] - b["log_loss"] for a, b in pairs), default=None)
                claims.append(verdict(f"{ours}: log loss less that of {theirs}, at the worst", lost, MOST_LOST))
            ratios = [b["seconds"] / a["seconds"] for a, b in pairs]
            times = statistics.median(ratios) if ratios else None
            claims.append(
                verdict(f"{ours}: seconds of {theirs} over ours, median of {len(pairs)}", times, at_least=TIMES_FASTER)
            )
    return claims


def main(argv: list[str] | None = None) -> int:
    """Run the selected tables and contestants, and print the comparison."""
    parser = options("gp_classifier", "the first table")
    parser.add_argument("--only", default="", help="tables, separated by commas")
    parser.add_argument("--methods", default=";".join((*OURS, *THEIRS)), help="contestants, separated by semicolons")
    args = parser.parse_args(argv)
    load, name = load_at_start(), file_name("gp_classifier", args)
    methods, tables = args.methods.split(";"), small_tables([each for each in args.only.split(",") if each])
    tables = tables[:1] if args.quick else tables
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods:
            contestant(method, 2).fit(np.eye(20, 2), np.arange(20) % 2)  # imports and thread pools
    journal = Journal(args.out / f"{name}.jsonl", "table", "method")
    line = "{table:22} {method:32} log loss {log_loss} in {seconds} CPU s"
    lines = [journal.entry(run, line, table=table, method=method) for table in tables for method in methods]
    shown = [
        (
            table,
            *(str(facts[0][key]) for key in ("n", "columns", "classes")),
            *(f"{text(each['log_loss'])} in {text(each['seconds'])}" for each in facts),
        )
        for table in tables
        for facts in [[each for each in lines if each["table"] == table]]
    ]
    print_table("Log loss, and CPU seconds of a fit", ("table", "rows", "columns", "classes", *methods), shown)
    claims = judge(lines)
    print_claims(claims)
    keep(args.out, name, load, runs=lines, claims=claims)
    return 0


if __name__ == "__main__":
    sys.exit(main())
