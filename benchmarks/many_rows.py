"""RFM and Gaussian process on 1000 landmarks at 10^4, 10^5 and 10^6 rows of 30 columns: seconds and real peak memory.

Run by itself, `python -m benchmarks.many_rows [--quick] [--out DIR]`: every fit has a fresh process, whose peak
(ru_maxrss, with imports and data) is what a user's machine must hold; the harness compares calls within a process, and
claims there are ratios only.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import BUSY, ROOT, highest_ever, load_average, machine_facts
from experiments.report import print_table, strict_json, write_atomically

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (2000, 20_000)
N_LANDMARKS, N_COLUMNS = 1000, 30
MODELS = ("RFM", "GP")
MOST_GB, MOST_RATIO = 12.0, 12.0


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, N_COLUMNS), dtype=np.float32)
    noise = 0.1 * random.standard_normal(n, dtype=np.float32)
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] + noise


def fit(model: str, n: int) -> dict[str, Any]:
    """Fit in this process: kernel, metric and warp are fixed, so that what grows with n is the passes over the rows."""
    from mercer import GPRegressor, RFMRegressor

    options = {"warp": "none", "n_landmarks": N_LANDMARKS, "random_state": 0}
    estimator = RFMRegressor if model == "RFM" else GPRegressor
    X, y = rows(n)
    before, start = highest_ever(), time.perf_counter()
    estimator("gaussian", "diagonal", **options).fit(X, y)
    return {"model": model, "rows": n, "seconds": time.perf_counter() - start, "gb_before": before / 1e9}


def in_fresh_process(model: str, n: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.many_rows", "--fit", model, str(n)]
    done = subprocess.run(command, cwd=ROOT.parent, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def judge(found: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Claims on the largest size, and on its time over that of the size before: a tenth of the rows."""
    made = []
    by = {(entry["model"], entry["rows"]): entry for entry in found}
    for model in MODELS:
        large, small = by[model, sizes[-1]], by[model, sizes[-2]]
        ratio = large["seconds"] / small["seconds"]
        exponent = math.log(ratio) / math.log(sizes[-1] / sizes[-2])
        entries = (
            (f"{model}: {sizes[-1]} rows under {MOST_GB:g} GB at the real peak", large["peak_gb"], MOST_GB),
            (f"{model}: ten times the rows, at most {MOST_RATIO:g} times the seconds", ratio, MOST_RATIO),
        )
        made += [
            {"claim": c, "value": v, "at_most": m, "status": "held" if v <= m else "not held"} for c, v, m in entries
        ]
        made[-1]["exponent"] = exponent
    return made


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.many_rows")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SIZES} rows")
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="DIR")
    parser.add_argument("--fit", nargs=2, metavar=("MODEL", "ROWS"), help="one fit, in this process")
    args = parser.parse_args()
    if args.fit:
        result = fit(args.fit[0], int(args.fit[1]))
        print(json.dumps({**result, "peak_gb": highest_ever() / 1e9}))
        return
    load = load_average()
    if load is not None and load > BUSY:
        print(f"warning: the load average is {load:.2f}: the times are not to be trusted", file=sys.stderr)
    sizes = QUICK_SIZES if args.quick else SIZES
    found = [in_fresh_process(model, n) for n in sizes for model in MODELS]
    claims = judge(found, sizes)
    columns = ("model", "rows", "seconds", "peak GB", "of it before the fit")
    shown = [
        (e["model"], str(e["rows"]), f"{e['seconds']:.1f}", f"{e['peak_gb']:.2f}", f"{e['gb_before']:.2f}")
        for e in found
    ]
    print_table("many_rows", columns, shown)
    claim_rows = [
        (
            c["claim"],
            f"{c['value']:.3g}",
            f"{c['at_most']:g}",
            f"{c['exponent']:.2f}" if "exponent" in c else "",
            c["status"],
        )
        for c in claims
    ]
    print_table("Claims", ("claim", "value", "at most", "exponent", "status"), claim_rows)
    path = args.out / ("many_rows-quick.json" if args.quick else "many_rows.json")
    facts = {"machine": machine_facts(), "load_before": load}
    write_atomically(path, strict_json({"benchmark": "many_rows", "fits": found, "claims": claims, **facts}))
    print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
