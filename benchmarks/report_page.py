"""`mercer report` of models of 100 000 rows: seconds after the fit, including the start of Python, and page size.

Run as `python -m benchmarks.report_page [--quick] [--only KIND] [--out DIR]`; `--all` does not run it. It runs the
commands like a user, each in a fresh process, on files that it generates.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.bounds import keep, load_at_start, print_claims, verdict
from benchmarks.harness import ROOT
from experiments.report import print_table

ROWS, QUICK_ROWS = 100_000, 3000
MOST_SECONDS, MOST_MB = 30.0, 5.0
# The models that are fitted before the page is written, with a time limit, since the page does not need a long search.
FITS = {
    "prediction": ("fit", "rows.csv", "--target", "rent", "--time-limit", "20", "--out", "model.mercer"),
    "classes": ("fit", "rows.csv", "--target", "town", "--time-limit", "20", "--out", "model.mercer"),
    "embedding": ("embed", "rows.csv", "--ignore", "rent", "--save", "model.mercer", "--out", "map.csv"),
    "clustering": ("cluster", "rows.csv", "--n-clusters", "6", "--save", "model.mercer", "--out", "groups.csv"),
}


def rented_flats(n: int) -> pd.DataFrame:
    """Return a table with numbers, categories, dates and missing values; the rent depends on size, town and age."""
    random = np.random.default_rng(0)
    town = random.choice(["Graz", "Lund", "Metz", "Porto"], size=n)
    frame = pd.DataFrame(
        {
            "size": random.gamma(8.0, 10.0, size=n).round(1),
            "rooms": random.integers(1, 7, size=n),
            "town": town,
            "built": pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 25_000, size=n), unit="D"),
            **{f"noise {i}": random.normal(size=n) for i in range(12)},
        }
    )
    age = (pd.Timestamp("2020-01-01") - frame["built"]).dt.days / 365.0
    dear = frame["town"].map({"Graz": 9.0, "Lund": 14.0, "Metz": 7.0, "Porto": 11.0})
    frame["rent"] = (dear * frame["size"] * np.exp(-age / 80.0) + random.normal(0.0, 20.0, size=n)).round(2)
    frame.loc[random.random(n) < 0.05, "rooms"] = np.nan
    return frame


def mercer(folder: Path, *args: str) -> float:
    """Run a command in a folder; return its seconds, including the start of Python."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "mercer", *args], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measure(kind: str, n: int) -> dict[str, Any]:
    """Fit and write the page; return the seconds and the size of the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rented_flats(n).to_csv(folder / "rows.csv", index=False)
        fit_seconds = mercer(folder, *FITS[kind])
        seconds = mercer(folder, "report", "model.mercer", "rows.csv", "--out", "page.html")
        size = (folder / "page.html").stat().st_size
    return {"kind": kind, "rows": n, "fit_seconds": fit_seconds, "report_seconds": seconds, "megabytes": size / 1e6}


def judge(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on the seconds and the size of every page."""
    made = []
    for each in found:
        page = f"{each['kind']}: page of {each['rows']} rows"
        made.append(verdict(f"{page} under {MOST_SECONDS:g} s after the fit", each["report_seconds"], MOST_SECONDS))
        made.append(verdict(f"{page} under {MOST_MB:g} MB", each["megabytes"], MOST_MB))
    return made


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.report_page")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows in place of {ROWS}")
    parser.add_argument("--only", choices=FITS, metavar="KIND", help="one of the pages; a file of its own")
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="DIR")
    args = parser.parse_args()
    load = load_at_start()
    found = [measure(kind, QUICK_ROWS if args.quick else ROWS) for kind in ((args.only,) if args.only else FITS)]
    columns = ("kind", "rows", "fit seconds", "report seconds", "megabytes")
    shown = [
        (e["kind"], str(e["rows"]), *(f"{e[k]:.2f}" for k in ("fit_seconds", "report_seconds", "megabytes")))
        for e in found
    ]
    print_table("report_page", columns, shown)
    claims = judge(found)
    print_claims(claims)
    parts = ["report_page", args.only, "quick" if args.quick else None]
    keep(args.out, "-".join(part for part in parts if part), load, pages=found, claims=claims)


if __name__ == "__main__":
    main()
