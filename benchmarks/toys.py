"""Three toys with different best metrics: the defaults, compared with the single metric that is best on the test rows.

Run as `python -m benchmarks toys [--seeds 20] [--quick] [--out DIR]`. 200 rows of 15 normal columns, noise of a tenth
of the signal's spread; errors are against the signal on 1000 fresh rows, divided by its spread. What was measured is
kept line by line in a journal, so that a stopped run continues where it was.
"""

import statistics
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from benchmarks.contestants import OURS, one_thread, regressor
from benchmarks.journal import Journal
from benchmarks.made_tables import TOY_ROWS, TOYS, rmse, toy_rows
from experiments.report import print_table

SEEDS, QUICK_SEEDS, QUICK_ROWS = 20, 1, 25
SINGLE_METRICS = ("identity", "diagonal", "full", "ard")
DEFAULT = "default"
SETTINGS = (DEFAULT, *SINGLE_METRICS)
MOST = 1.03


def fit(toy: str, seed: int, method: str, setting: str, n: int = TOY_ROWS) -> dict[str, float]:
    """Fit one model on one toy, with its defaults or with one metric whose last step is kept."""
    chosen = {} if setting == DEFAULT else {"metric": setting, "iterate": "last"}
    model, (train, test) = regressor(method, **chosen), toy_rows(toy, seed, n)
    start = time.perf_counter()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prediction = model.fit(train.X, train.y).predict(test.X)
    return {"rmse": rmse(prediction, test.truth), "seconds": time.perf_counter() - start}


def means(fits: Sequence[dict[str, Any]]) -> dict[tuple[str, str, str], float]:
    """Return the mean error over the seeds for each (toy, method, setting)."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for each in fits:
        groups.setdefault((each["toy"], each["method"], each["setting"]), []).append(each["rmse"])
    return {key: statistics.fmean(errors) for key, errors in groups.items()}


def judge(errors: dict[tuple[str, str, str], float]) -> list[dict[str, Any]]:
    """Return the verdicts on the errors of both defaults divided by that of the best single metric of the RFM."""
    claims = []
    for name in dict.fromkeys(name for name, _, _ in errors):
        best = min(SINGLE_METRICS, key=lambda metric: errors[name, "RFMRegressor", metric])
        for method in OURS:
            ratio = errors[name, method, DEFAULT] / errors[name, "RFMRegressor", best]
            claims.append(verdict(f"{name}: {method}() over the best single metric, {best}", ratio, MOST))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit both models with their defaults and with each metric alone, and print the comparison."""
    parser = options("toys", f"one seed of one toy, {QUICK_ROWS} rows")
    parser.add_argument("--seeds", type=int, help=f"tables of each toy ({SEEDS})")
    args = parser.parse_args(argv)
    load, seeds = load_at_start(), args.seeds or (QUICK_SEEDS if args.quick else SEEDS)
    journal = Journal(args.out / f"{file_name('toys', args)}.jsonl", "toy", "seed", "method", "setting")
    run = partial(fit, n=QUICK_ROWS if args.quick else TOY_ROWS)
    names = list(TOYS)[:1] if args.quick else list(TOYS)
    line = "{toy:18} seed {seed:2} {method:14} {setting:10} rmse {rmse:.4f} in {seconds:.1f} s"
    fits = [
        journal.entry(run, line, toy=name, seed=seed, method=method, setting=setting)
        for seed in range(seeds)
        for name in names
        for method in OURS
        for setting in SETTINGS
    ]
    errors = means(fits)
    rows = [
        (name, method, *(f"{errors[name, method, setting]:.4f}" for setting in SETTINGS))
        for name in names
        for method in OURS
    ]
    print_table(f"toys, {seeds} seeds: mean RMSE over the signal's spread", ("toy", "method", *SETTINGS), rows)
    claims = judge(errors)
    print_claims(claims)
    keep(args.out, file_name("toys", args), load, fits=fits, claims=claims)
    return 0
