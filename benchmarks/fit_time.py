"""Seconds, memory and errors of a default fit on Friedman's function, compared with CatBoost's defaults.

Run as `python -m benchmarks fit_time [--repeats 3] [--quick] [--out DIR]`. Every fit has a fresh process and one
thread. The contestants run in turn, on a new table in each round. The medians of the seconds are compared, and errors
are relative to the function without noise. A figure, fit_time.png, is written next to the JSON file.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, ratio, text, verdict
from benchmarks.contestants import OURS, installed
from experiments.report import print_table
from mercer.plots.labels import settle_layout
from mercer.plots.style import pyplot, series_style, tidy


class Size(NamedTuple):
    """The rows and columns of a table, and the largest ratio of the seconds of a fit to those of CatBoost."""

    n: int
    d: int
    most: float


SIZES = (Size(200, 10, 1.0), Size(1000, 10, 2.0), Size(2000, 10, 3.0), Size(10_000, 10, 5.0), Size(2000, 100, 1.0))
QUICK_SIZES = (Size(30, 10, 1.0), Size(40, 10, 2.0))
CONTESTANTS = (*OURS, "CatBoost")
PANELS = {"seconds": "seconds of a fit", "peak_mb": "peak memory of a fit, MB"}


def medians(fits: Sequence[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Return, for each (method, n, d), the medians of seconds and memory, and the root mean square of the errors."""
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for fit in fits:
        groups.setdefault((fit["method"], fit["n"], fit["d"]), []).append(fit)
    return {
        key: {
            **{of: statistics.median(fit[of] for fit in group) for of in ("seconds", "cpu_seconds")},
            "peak_mb": median_or_none([fit["peak_mb"] for fit in group]),
            "rmse": float(np.sqrt(np.mean([fit["rmse"] ** 2 for fit in group]))),
        }
        for key, group in groups.items()
    }


def median_or_none(values: Sequence[float | None]) -> float | None:
    """Return the median of values, or None if one of them is unknown."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None


def judge(found: dict[tuple[str, int, int], dict[str, Any]], sizes: Sequence[Size]) -> list[dict[str, Any]]:
    """Return the verdicts on the seconds of our models divided by those of CatBoost."""
    claims = []
    for n, d, most in sizes:
        base = found.get(("CatBoost", n, d), {}).get("seconds")
        for method in OURS:
            claim = f"{method}, {n} rows of {d} columns: seconds over CatBoost's"
            claims.append(verdict(claim, ratio(found[method, n, d]["seconds"], base), most))
    return claims


def shown(found: dict[tuple[str, int, int], dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of the table on the terminal."""
    rows = []
    for (method, n, d), each in found.items():
        base = found.get(("CatBoost", n, d), {})
        ratios = [text(ratio(each[of], base.get(of))) for of in ("seconds", "cpu_seconds", "rmse")]
        values = [text(each[of]) for of in ("seconds", "cpu_seconds", "peak_mb", "rmse")]
        rows.append((method, str(n), str(d), *values, *ratios))
    return rows


def draw(found: dict[tuple[str, int, int], dict[str, Any]], path: Path, d: int = 10) -> None:
    """Draw seconds and memory by the number of rows for tables of d columns, each curve with its name at its end."""
    plt = pyplot()
    from matplotlib.ticker import LogLocator, NullLocator

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for ax, (of, title) in zip(axes, PANELS.items(), strict=True):
        ends = {}
        for i, method in enumerate(CONTESTANTS):
            points = sorted(
                (n, each[of]) for (name, n, columns), each in found.items() if (name, columns) == (method, d)
            )
            known = [(n, value) for n, value in points if value]
            if known:
                style = series_style(i)
                ax.plot(*zip(*known, strict=True), **style, markersize=4, linewidth=1.5)
                ends[method] = (*known[-1], style["color"])
        ax.set(xscale="log", yscale="log", xlabel="rows")
        ax.set_xticks(sorted({n for _, n, columns in found if columns == d}))
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        ax.set_title(title, fontsize=10)
        name_ends(ax, ends)
        tidy(ax)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def name_ends(ax: Any, ends: dict[str, tuple[float, float, str]], gap: float = 12.0) -> None:
    """Write the name of each curve at its last point, at least `gap` points (1/72 inch) above the name below it."""
    settle_layout(ax)
    lowest = -np.inf
    for name, (n, value, color) in sorted(ends.items(), key=lambda end: end[1][1]):
        own = ax.transData.transform((n, value))[1] * 72 / ax.figure.dpi
        lowest = max(own, lowest + gap)
        ax.annotate(
            name, (n, value), xytext=(7, lowest - own), textcoords="offset points", color=color, fontsize=9, va="center"
        )


def main(argv: list[str] | None = None) -> int:
    """Fit all contestants on all tables, and compare."""
    parser = options("fit_time", "30 and 40 rows, once")
    parser.add_argument("--repeats", type=int, help="rounds of each size (3)")
    args = parser.parse_args(argv)
    load, sizes = load_at_start(), QUICK_SIZES if args.quick else SIZES
    fits = []
    for n, d, _ in sizes:
        for seed in range(args.repeats or (1 if args.quick else 3)):
            for method in installed(CONTESTANTS):
                task = {"method": method, "function": "friedman", "n": n, "d": d, "seed": seed}
                fits.append({**task, **fresh_process.call("contestants", "fit_of", **task)})
                line = "{method:14} {n:6} rows of {d:3} columns, round {seed}: {seconds:.2f} s, rmse {rmse:.3f}"
                print(line.format(**fits[-1]), flush=True)
    found = medians(fits)
    columns = ("method", "rows", "columns", "seconds", "CPU seconds", "peak MB", "rmse")
    print_table("fit_time", (*columns, "seconds ratio", "CPU ratio", "rmse ratio"), shown(found))
    claims = judge(found, sizes)
    print_claims(claims)
    draw(found, args.out / f"{file_name('fit_time', args)}.png")
    keep(args.out, file_name("fit_time", args), load, fits=fits, claims=claims)
    return 0
