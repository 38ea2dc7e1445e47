"""A predictive category with many levels: Mercer's error compared with that of CatBoost, which encodes categories.

Run as `python -m benchmarks categories [--seeds N] [--levels N] [--out DIR]`. The table is generated: 4000 rows, a
column of 2000 levels with normally distributed effects, a smooth function of two columns of numbers, and noise. A fifth
of the rows is for the test, so that a level has 1.6 training rows on average. Every fit runs on one thread.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import keep, load_at_start, print_claims, verdict
from benchmarks.harness import ROOT
from benchmarks.tables import CONTESTANTS
from experiments.report import print_table

ROWS, LEVELS, TEST = 4000, 2000, 800
NOISE = 0.5
METHODS = ("RFMRegressor", "CatBoost")
# The largest ratio of Mercer's RMSE to CatBoost's.
MOST_RATIO = 1.05


def made_table(seed: int, rows: int = ROWS, levels: int = LEVELS) -> tuple[Any, np.ndarray]:
    """Return a table with a column of many levels, and its target."""
    import pandas as pd

    random = np.random.default_rng(seed)
    codes, effects = random.integers(0, levels, rows), random.normal(size=levels)
    a, b = random.uniform(-2.0, 2.0, (2, rows))
    target = np.sin(2.0 * a) * b + effects[codes] + NOISE * random.normal(size=rows)
    return pd.DataFrame({"a": a, "b": b, "shop": [f"shop {code}" for code in codes]}), target


def run(seed: int, method: str, levels: int = LEVELS) -> dict[str, Any]:
    """Fit one contestant on one table. Its rows are in random order, so the last ones are used for the test."""
    from threadpoolctl import threadpool_limits

    table, y = made_table(seed, levels=levels)
    with threadpool_limits(1):
        outcome = CONTESTANTS[method](table[:-TEST], y[:-TEST], table[-TEST:], y[-TEST:])
    rmse = float(np.sqrt(np.mean((outcome.pop("prediction") - y[-TEST:]) ** 2)))
    return {"seed": seed, "method": method, "levels": levels, "rmse": rmse, **outcome}


def main(argv: list[str] | None = None) -> int:
    """Run both contestants on each table and print the errors."""
    parser = argparse.ArgumentParser("python -m benchmarks categories")
    parser.add_argument("--seeds", type=int, default=3, help="tables to make (3)")
    parser.add_argument("--levels", type=int, default=LEVELS, help="levels to draw from (2000)")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    args = parser.parse_args(argv)
    load = load_at_start()
    lines = [run(seed, method, args.levels) for seed in range(args.seeds) for method in METHODS]
    rows = [(str(x["seed"]), x["method"], f"{x['rmse']:.4f}", f"{x['seconds']:.1f}") for x in lines]
    print_table("categories", ("seed", "method", "rmse", "seconds"), rows)
    errors = np.array([x["rmse"] for x in lines]).reshape(args.seeds, len(METHODS))
    worst = float((errors[:, 0] / errors[:, 1]).max())
    claims = [verdict("RMSE of RFMRegressor over CatBoost's, the worst table", worst, MOST_RATIO)]
    print_claims(claims)
    keep(args.out, "categories", load, runs=lines, claims=claims)
    return 0


if __name__ == "__main__":
    sys.exit(main())
