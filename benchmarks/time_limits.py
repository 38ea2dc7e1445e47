"""Fits with a time limit: whether they keep it, whether they beat a linear model, and whether fits can be repeated.

Run as `python -m benchmarks time_limits [--quick] [--out DIR]`. The tables are Friedman's function of 10 columns with
500, 5000 and 50 000 rows, and the limits 5, 20 and 60 seconds. Every fit has a fresh process and one thread. Errors are
relative to the function without noise, and compared with those of scikit-learn's RidgeCV. Without a limit, every size
is fitted twice with the same `random_state`.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from benchmarks.contestants import OURS, one_thread, regressor
from benchmarks.made_tables import rmse, uniform_rows
from experiments.report import print_table

SIZES, QUICK_SIZES = (500, 5000, 50_000), (40,)
LIMITS, QUICK_LIMITS = (5.0, 20.0, 60.0), (0.2,)
COLUMNS, FRESH_ROWS, COMPARED_ROWS = 10, 2000, 500


def most_seconds(limit: float) -> float:
    """Return the seconds that a limit allows; a running step is completed, and a first machine is always fitted."""
    return 1.3 * limit + 2.0


def error_of_ridge(n: int) -> float:
    """Return the error of a linear model on the same rows."""
    rows, fresh = (
        uniform_rows("friedman", size, COLUMNS, 0, fresh=new) for size, new in ((n, False), (FRESH_ROWS, True))
    )
    return rmse(RidgeCV().fit(rows.X, rows.y).predict(fresh.X), fresh.truth)


def predictions_of(method: str, n: int) -> list[float]:
    """Fit without a limit in this process, and return the predictions of some rows."""
    rows, fresh = (
        uniform_rows("friedman", n, COLUMNS, 0),
        uniform_rows("friedman", COMPARED_ROWS, COLUMNS, 0, fresh=True),
    )
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(regressor(method).fit(rows.X, rows.y).predict(fresh.X)).tolist()


def judge(limited: Sequence[dict[str, Any]], repeated: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on seconds, on errors relative to the linear model, and on the difference of equal fits."""
    claims = []
    for fit in limited:
        case = f"{fit['method']}, {fit['n']} rows, time_limit={fit['limit']:g}"
        claims.append(verdict(f"{case}: seconds", fit["seconds"], most_seconds(fit["limit"])))
        claims.append(verdict(f"{case}: RMSE over RidgeCV's", fit["rmse"] / fit["ridge_rmse"], 1.0))
    for pair in repeated:
        claim = f"{pair['method']}, {pair['n']} rows, no limit: largest difference of two fits"
        claims.append(verdict(claim, pair["difference"], 0.0))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit with all limits, then twice without a limit, and print the verdicts."""
    args = options("time_limits", "40 rows, a limit of 0.2 s").parse_args(argv)
    load = load_at_start()
    sizes, limits = (QUICK_SIZES, QUICK_LIMITS) if args.quick else (SIZES, LIMITS)
    limited, repeated = [], []
    for n in sizes:
        ridge = error_of_ridge(n)
        for limit in limits:
            for method in OURS:
                task = {"method": method, "function": "friedman", "n": n, "d": COLUMNS, "n_fresh": FRESH_ROWS}
                found = fresh_process.call("contestants", "fit_of", **task, options={"time_limit": limit})
                limited.append({"method": method, "n": n, "limit": limit, "ridge_rmse": ridge, **found})
                line = "{method} {n} rows, limit {limit:4g} s: {seconds:.1f} s, rmse {rmse:.3f}, ridge {ridge_rmse:.3f}"
                print(line.format(**limited[-1]), flush=True)
    for n in sizes:
        for method in OURS:
            first, second = (fresh_process.call("time_limits", "predictions_of", method=method, n=n) for _ in range(2))
            difference = float(np.abs(np.subtract(first, second)).max())
            repeated.append({"method": method, "n": n, "difference": difference})
            print("{method:14} {n:6} rows, twice: largest difference {difference:g}".format(**repeated[-1]), flush=True)
    rows = [
        (f["method"], str(f["n"]), *(f"{f[of]:.3g}" for of in ("limit", "seconds", "rmse", "ridge_rmse")))
        for f in limited
    ]
    print_table("time_limits", ("method", "rows", "limit", "seconds", "rmse", "ridge's rmse"), rows)
    claims = judge(limited, repeated)
    print_claims(claims)
    keep(args.out, file_name("time_limits", args), load, limited=limited, repeated=repeated, claims=claims)
    return 0
