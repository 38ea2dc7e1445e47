"""RFM, GP and embedding on 1000 landmarks with 10^4, 10^5 and 10^6 rows of 30 columns: seconds and total peak memory.

The peak of the embedding is also measured on 60 000 rows of 784 columns, the size of MNIST.

Run as `python -m benchmarks.many_rows [--quick] [--only MODEL] [--out DIR]`. Every fit has a fresh process. Its peak
memory (ru_maxrss, including imports and data) is what a user's machine must have; the harness, in contrast, compares
calls within a process, and its claims are about ratios only.
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh_process
from benchmarks.bounds import keep, load_at_start, print_claims, verdict
from benchmarks.harness import ROOT, highest_ever
from experiments.report import print_table

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (2000, 20_000)
N_LANDMARKS, QUICK_LANDMARKS, N_COLUMNS = 1000, 200, 30
MODELS = ("RFM", "GP", "embedding")
MOST_GB, MOST_RATIO = 12.0, 12.0
# Rows and columns of the wide table for the embedding, and the largest peak allowed there.
WIDE, QUICK_WIDE, MOST_GB_WIDE = (60_000, 784), (2000, 784), 1.5


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d), dtype=np.float32)
    noise = 0.1 * random.standard_normal(n, dtype=np.float32)
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] + noise


def estimator(model: str, d: int, m: int) -> Any:
    """Return the estimator; kernel, metric, bandwidth and warp are fixed, so that only passes over rows grow with n."""
    from mercer import GPRegressor, KernelEmbedding, RFMRegressor

    options = {"n_landmarks": m, "random_state": 0}
    if model == "embedding":  # the bandwidth is the median distance of standard normal rows
        return KernelEmbedding(bandwidth=math.sqrt(2 * d), **options)
    return (RFMRegressor if model == "RFM" else GPRegressor)("gaussian", "diagonal", warp="none", **options)


def fit(model: str, n: int, d: int, m: int) -> dict[str, Any]:
    """Fit a model in this process."""
    X, y = rows(n, d)
    made = estimator(model, d, m)
    before, start = highest_ever(), time.perf_counter()
    made.fit(X, y)
    seconds, gigabytes = time.perf_counter() - start, {"gb_before": before / 1e9, "peak_gb": highest_ever() / 1e9}
    return {"model": model, "rows": n, "columns": d, "seconds": seconds, **gigabytes}


def in_fresh_process(model: str, n: int, d: int, m: int) -> dict[str, Any]:
    return fresh_process.call("many_rows", "fit", model=model, n=n, d=d, m=m)


def judge(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on the peak with the most rows, on the growth of the time, and on the wide table's peak."""
    made = []
    for model in MODELS:
        long = sorted((e for e in found if e["model"] == model and e["columns"] == N_COLUMNS), key=lambda e: e["rows"])
        if not long:
            continue
        small, large = long[-2:]
        ratio = large["seconds"] / small["seconds"]
        peak = f"{model}: {large['rows']} rows under {MOST_GB:g} GB at the real peak"
        made.append(verdict(peak, large["peak_gb"], MOST_GB))
        growth = f"{model}: ten times the rows, at most {MOST_RATIO:g} times the seconds"
        exponent = math.log(ratio) / math.log(large["rows"] / small["rows"])
        made.append({**verdict(growth, ratio, MOST_RATIO), "exponent": exponent})
    for wide in (e for e in found if e["columns"] != N_COLUMNS):
        text = f"{wide['model']}: {wide['rows']} rows of {wide['columns']} columns under {MOST_GB_WIDE:g} GB"
        made.append(verdict(text, wide["peak_gb"], MOST_GB_WIDE))
    return made


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.many_rows")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SIZES} rows, {QUICK_LANDMARKS} landmarks")
    parser.add_argument("--only", choices=MODELS, metavar="MODEL", help="one of the models; a file of its own")
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="DIR")
    args = parser.parse_args()
    load = load_at_start()
    sizes = QUICK_SIZES if args.quick else SIZES
    m = QUICK_LANDMARKS if args.quick else N_LANDMARKS
    models = (args.only,) if args.only else MODELS
    found = [in_fresh_process(model, n, N_COLUMNS, m) for n in sizes for model in models]
    if "embedding" in models:
        found.append(in_fresh_process("embedding", *(QUICK_WIDE if args.quick else WIDE), m))
    claims = judge(found)
    columns = ("model", "rows", "columns", "seconds", "peak GB", "of it before the fit")
    shown = [
        (e["model"], str(e["rows"]), str(e["columns"]), *(f"{e[k]:.2f}" for k in ("seconds", "peak_gb", "gb_before")))
        for e in found
    ]
    print_table("many_rows", columns, shown)
    print_claims(claims)
    parts = ["many_rows", args.only, "quick" if args.quick else None]
    keep(args.out, "-".join(part for part in parts if part), load, fits=found, claims=claims)


if __name__ == "__main__":
    main()
