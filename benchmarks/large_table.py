"""A million rows of 30 columns: seconds, error and peak memory of default fits of Mercer, CatBoost and LightGBM.

Run as `python -m benchmarks large_table [--rows N] [--methods NAME,...] [--quick] [--out DIR]`. The target is
Friedman's function of the first five columns plus an interaction of the next two plus noise; the other columns have no
effect. Every fit has a fresh process, which draws the table in single precision, and one thread. GPRegressor is run
only if --methods names it.
"""

from collections.abc import Sequence
from typing import Any

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, ratio, text, verdict
from benchmarks.contestants import OURS, installed
from experiments.report import print_table

ROWS, QUICK_ROWS, COLUMNS, FRESH_ROWS = 1_000_000, 40, 30, 10_000
METHODS = ("RFMRegressor", "CatBoost", "LightGBM")
MOST_TIME, MOST_ERROR, MOST_MB = 5.0, 1.0, 4000.0


def judge(fits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on seconds and errors divided by those of CatBoost, and on the peak memory."""
    base = next((fit for fit in fits if fit["method"] == "CatBoost"), {})
    claims = []
    for fit in (fit for fit in fits if fit["method"] in OURS):
        case = f"{fit['method']}, {fit['n']} rows"
        claims.append(
            verdict(f"{case}: seconds over CatBoost's", ratio(fit["seconds"], base.get("seconds")), MOST_TIME)
        )
        claims.append(verdict(f"{case}: RMSE over CatBoost's", ratio(fit["rmse"], base.get("rmse")), MOST_ERROR))
        claims.append(verdict(f"{case}: peak memory, MB", fit["peak_mb"], MOST_MB))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit all contestants, and compare."""
    parser = options("large_table", f"{QUICK_ROWS} rows")
    parser.add_argument("--rows", type=int, help=f"rows to learn from ({ROWS})")
    parser.add_argument("--methods", default=",".join(METHODS), help="contestants, separated by commas")
    args = parser.parse_args(argv)
    load, n = load_at_start(), args.rows or (QUICK_ROWS if args.quick else ROWS)
    fits = []
    for method in installed(args.methods.split(",")):
        task = {"method": method, "function": "friedman_and_a_wave", "n": n, "d": COLUMNS}
        task |= {"n_fresh": FRESH_ROWS, "dtype": "float32"}
        fits.append({**task, **fresh_process.call("contestants", "fit_of", **task)})
        print("{method:14} {n} rows: {seconds:.1f} s, rmse {rmse:.4f}".format(**fits[-1]), flush=True)
    columns = ("method", "rows", "seconds", "CPU seconds", "peak MB", "rmse")
    values = ("seconds", "cpu_seconds", "peak_mb", "rmse")
    print_table("large_table", columns, [(f["method"], str(n), *(text(f[of], 4) for of in values)) for f in fits])
    claims = judge(fits)
    print_claims(claims)
    keep(args.out, file_name("large_table", args), load, fits=fits, claims=claims)
    return 0
