"""Whether the importances of a model rank columns like permutation importances on test rows.

Run as `python -m benchmarks importances [--only NAME,...] [--methods NAME,...] [--quick] [--out DIR]`, on fold 0 of the
tables of `$MERCER_DATA/tables` with a number to predict, at most 2000 rows to learn from. The columns compared are
those whose permutation (10 times, by the RMSE of the test fold) costs more than two standard errors; tables with fewer
than three of them say nothing about ranks and are left out. What was measured is kept line by line in a journal, so
that a stopped run continues where it was.
"""

import statistics
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from benchmarks.contestants import OURS, one_thread, regressor
from benchmarks.journal import Journal
from benchmarks.tables import MOST_TRAIN, cases, fold_of
from experiments.report import print_table

REPEATS, STANDARD_ERRORS, FEWEST_COLUMNS = 10, 2.0, 3
QUICK_TABLES, QUICK_ROWS = ("number_servo", "number_cpu"), 60
LEAST = 0.8


def standard_errors(permuted: np.ndarray) -> np.ndarray:
    """Return the standard errors of the mean over permutations, of shape (d,), for importances (d, repeats)."""
    return permuted.std(axis=1, ddof=1) / np.sqrt(permuted.shape[1])


def compared(permuted: np.ndarray) -> np.ndarray:
    """Return which columns have a permutation importance above two standard errors."""
    return permuted.mean(axis=1) > STANDARD_ERRORS * standard_errors(permuted)


def rank_correlation(own: np.ndarray, permuted: np.ndarray) -> tuple[float | None, int]:
    """Return Spearman's correlation of a model's importances with those of permutations, and the number of columns.

    Parameters
    ----------
    own : ndarray of shape (d,)
    permuted : ndarray of shape (d, repeats)

    Returns
    -------
    correlation : float or None
        None if fewer than FEWEST_COLUMNS columns are compared.
    n_columns : int
    """
    from scipy.stats import spearmanr

    chosen = compared(permuted)
    count = int(chosen.sum())
    if count < FEWEST_COLUMNS:
        return None, count
    return float(spearmanr(own[chosen], permuted.mean(axis=1)[chosen]).statistic), count


def measure(table: str, method: str, most_rows: int) -> dict[str, Any]:
    """Fit a model on fold 0 of a table, and compare both rankings of its columns."""
    from sklearn.inspection import permutation_importance

    import mercer

    rows = fold_of(table, 0, most_rows)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mercer.tabular(regressor(method)).fit(rows.train, rows.y)
        permuted = permutation_importance(
            model,
            rows.test,
            rows.targets,
            scoring="neg_root_mean_squared_error",
            n_repeats=REPEATS,
            random_state=0,
            n_jobs=1,
        ).importances
    correlation, count = rank_correlation(model.feature_importances_, permuted)
    ranks = "left out" if correlation is None else f"{correlation:.3f}"
    return {
        "correlation": correlation,
        "ranks": ranks,
        "counted": count,
        "columns": list(map(str, rows.train)),
        "own": model.feature_importances_.tolist(),
        "permuted": permuted.mean(axis=1).tolist(),
        "standard_errors": standard_errors(permuted).tolist(),
    }


def judge(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on the median correlation over the tables."""
    claims = []
    for method in dict.fromkeys(each["method"] for each in found):
        known = [e["correlation"] for e in found if e["method"] == method and e["correlation"] is not None]
        median = statistics.median(known) if known else None
        claims.append(verdict(f"{method}: median rank correlation of {len(known)} tables", median, at_least=LEAST))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Rank the columns of all tables by both models, and compare."""
    parser = options("importances", f"{QUICK_ROWS} rows of {' and '.join(QUICK_TABLES)}")
    parser.add_argument("--only", default="", help="tables, separated by commas")
    parser.add_argument("--methods", default=",".join(OURS), help="models, separated by commas")
    args = parser.parse_args(argv)
    load, name = load_at_start(), file_name("importances", args)
    only = [each for each in args.only.split(",") if each] or (list(QUICK_TABLES) if args.quick else [])
    run = partial(measure, most_rows=QUICK_ROWS if args.quick else MOST_TRAIN)
    journal = Journal(args.out / f"{name}.jsonl", "table", "method")
    line = "{table:20} {method:14} {ranks}, {counted} columns"
    found = [
        journal.entry(run, line, table=table, method=method)
        for table, _ in cases(only, "one")
        for method in args.methods.split(",")
    ]
    rows = [(e["table"], e["method"], str(len(e["columns"])), str(e["counted"]), e["ranks"]) for e in found]
    print_table(name, ("table", "model", "columns", "counted", "rank correlation"), rows)
    claims = judge(found)
    print_claims(claims)
    keep(args.out, name, load, tables=found, claims=claims)
    return 0
