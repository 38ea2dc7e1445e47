"""Densities and 90 % intervals of GPRegressor, NGBoost, CatBoost, scikit-learn's GPR and GPyTorch.

Run as `python -m benchmarks distributions`, with the options of `python -m benchmarks tables`, on the same splits. The
contestants are compared by the mean negative log likelihood (NLL) of the test rows, and by the share of test rows
inside 90 % intervals. This share is pooled over the rows of all tables, and also given for each third of a table's rows
by the width of the intervals, and for tables with fewer than 600 training rows. Gaussian processes of peers are fitted
to at most 1000 rows, drawn with seed 0.
"""

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bounds import print_claims, verdict
from benchmarks.contestants import one_thread, regressor
from benchmarks.made_tables import rmse
from benchmarks.tables import LEVEL, Fold, categorical, compare, fold_of, means, numbers_of, with_words
from experiments.rfm_and_ard.data import Predict
from experiments.rfm_and_ard.peers import fit_catboost_uncertainty, peer
from mercer.metrics import interval_halfwidth, mean_ranks, negative_log_likelihood

OURS = "GPRegressor"
# The largest number of training rows of peers' Gaussian processes; tables with fewer rows than the second are also
# judged separately.
MOST_FOR_PROCESSES, FEW_ROWS = 1000, 600
THIRDS = ("narrow", "middle", "wide")
POOLED, WITHIN_A_THIRD = (0.87, 0.93), (0.84, 0.96)

Outcome = dict[str, Any]


class Distribution(NamedTuple):
    """The prediction for some rows: means, intervals, and the NLL of the targets."""

    mean: np.ndarray
    nll: float
    lower: np.ndarray
    upper: np.ndarray


# ---- contestants: rows -> the seconds of the fit, and the prediction -------------------------------------------------


def of_mercer(rows: Fold) -> tuple[float, Distribution]:
    """Fit GPRegressor with its defaults, by `tabular`."""
    import mercer

    model = mercer.tabular(regressor(OURS))
    start = time.perf_counter()
    model.fit(rows.train, rows.y)
    seconds = time.perf_counter() - start
    lower, upper = model.predict_interval(rows.test, LEVEL).T
    nll = -float(np.mean(model.log_density(rows.test, rows.targets)))
    return seconds, Distribution(model.predict(rows.test), nll, lower, upper)


def of_catboost(rows: Fold) -> tuple[float, Distribution]:
    """Fit CatBoost with uncertainty, with its own treatment of categories."""
    words = categorical(rows.train)
    start = time.perf_counter()
    predict = fit_catboost_uncertainty(with_words(rows.train, words), rows.y, 0, cat_features=words)
    return time.perf_counter() - start, as_distribution(predict, with_words(rows.test, words), rows.targets)


def of_peer(name: str, rows: Fold, most_rows: int | None = None) -> tuple[float, Distribution]:
    """Fit a peer that accepts only numbers, to at most `most_rows` rows."""
    X, X_test = numbers_of(rows.train, rows.test)
    kept = np.random.default_rng(0).permutation(len(X))[:most_rows]
    fit, _ = peer(name)
    start = time.perf_counter()
    predict = fit(X[kept], rows.y[kept], 0)
    return time.perf_counter() - start, as_distribution(predict, X_test, rows.targets)


def as_distribution(predict: Predict, test: Any, targets: np.ndarray) -> Distribution:
    """Return the prediction of a peer, a Gaussian for each row."""
    found = predict(test)
    mean, std = found.mean, found.std
    half = interval_halfwidth(LEVEL) * np.asarray(std, dtype=float)
    return Distribution(mean, negative_log_likelihood(targets, mean, std), mean - half, mean + half)


CONTESTANTS: dict[str, Callable[[Fold], tuple[float, Distribution]]] = {
    OURS: of_mercer,
    "CatBoost (uncertainty)": of_catboost,
    "NGBoost": partial(of_peer, "NGBoost"),
    "scikit-learn GPR": partial(of_peer, "scikit-learn GPR", most_rows=MOST_FOR_PROCESSES),
    "GPyTorch": partial(of_peer, "GPyTorch", most_rows=MOST_FOR_PROCESSES),
}


# ---- runs -----------------------------------------------------------------------------------------------------------


def run(table: str, fold: int, method: str, most_rows: int) -> Outcome:
    """Fit one contestant on one fold of one table."""
    rows = fold_of(table, fold, most_rows)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, found = CONTESTANTS[method](rows)
    inside = (found.lower <= rows.targets) & (rows.targets <= found.upper)
    thirds = np.array_split(inside[np.argsort(found.upper - found.lower, kind="stable")], len(THIRDS))
    return {
        "n": len(rows.y),
        "seconds": seconds,
        "rmse": rmse(found.mean, rows.targets),
        "nll": found.nll,
        "coverage": float(inside.mean()),
        "covered": [int(third.sum()) for third in thirds],
        "rows": [len(third) for third in thirds],
    }


def coverage_of(lines: list[Outcome]) -> list[float]:
    """Return the shares of rows inside their intervals, over the rows of all lines: of all rows, then of each third."""
    covered = np.sum([line["covered"] for line in lines], axis=0)
    rows = np.sum([line["rows"] for line in lines], axis=0)
    return [float(covered.sum() / rows.sum()), *(float(share) for share in covered / rows)]


def sizes(lines: list[Outcome]) -> dict[str, list[Outcome]]:
    """Return the lines of all tables, of tables with few rows and of tables with many rows, without empty groups."""
    few = [line for line in lines if line["n"] < FEW_ROWS]
    many = [line for line in lines if line["n"] >= FEW_ROWS]
    named = {"all tables": lines, f"below {FEW_ROWS} rows": few, f"from {FEW_ROWS} rows": many}
    return {name: group for name, group in named.items() if group}


def judge(lines: list[Outcome]) -> list[dict[str, Any]]:
    """Return the verdicts on the rank of our NLL and on the coverage of our intervals."""
    ranks, claims = mean_ranks(means(lines, "nll")), []
    others = [rank for method, rank in ranks.items() if method != OURS]
    if OURS in ranks:
        ahead = min(others) - ranks[OURS] if others else None
        claims.append(verdict("mean rank of the NLL: the best peer's less ours", ahead, at_least=0.0))
    for size, group in sizes([line for line in lines if line["method"] == OURS]).items():
        for name, share in zip(("pooled", *THIRDS), coverage_of(group), strict=True):
            low, high = POOLED if name == "pooled" else WITHIN_A_THIRD
            claims.append(verdict(f"coverage, {size}, {name}: no less than {low:g}", share, at_least=low))
            claims.append(verdict(f"coverage, {size}, {name}: no more than {high:g}", share, at_most=high))
    return claims


def summary(lines: list[Outcome]) -> dict[str, Any]:
    """Return the comparison with the verdicts, and print the verdicts."""
    losses, seconds = means(lines, "nll"), means(lines, "seconds")
    ranks, rows = mean_ranks(losses), []
    for method in losses:
        own = sizes([line for line in lines if line["method"] == method])
        shares = [" ".join(f"{share:.3f}" for share in coverage_of(group)) for group in own.values()]
        shares += [""] * (3 - len(shares))
        total, mean = sum(seconds[method].values()), float(np.mean(list(losses[method].values())))
        rows.append((method, f"{ranks[method]:.2f}", f"{mean:.3f}", *shares, f"{total:.0f}"))
    claims = judge(lines)
    print_claims(claims)
    coverages = ("coverage: all, narrow, middle, wide", f"below {FEW_ROWS} rows", f"from {FEW_ROWS} rows")
    columns = ("rank, NLL", "NLL", *coverages, "seconds")
    return {"tables": len(next(iter(losses.values()))), "columns": columns, "rows": rows, "claims": claims}


def main(argv: list[str] | None = None) -> int:
    """Run the selected tables and contestants, and print the comparison."""
    line = "{table:20} {fold} {method:22} nll {nll:.3f}, coverage {coverage:.3f} in {seconds:.1f} s"
    return compare("distributions", "number", CONTESTANTS, run, line, summary, argv)


if __name__ == "__main__":
    sys.exit(main())
