"""The tables of the experiment: contestants by sets for every measure, Figures 1 and 2, and the toys."""

import statistics
from collections.abc import Callable

from experiments import MissingResult, Results, Table, or_empty
from experiments.paired import shown

from .cases import (
    CONTESTANTS,
    CURVE,
    CURVE_ROWS,
    CURVE_SIZES,
    CURVED,
    LARGE,
    MOST_ROWS,
    SEVEN,
    TOY_COLUMNS,
    TOY_METHODS,
    TOY_ROWS,
    UNIQUE,
    WHOLE,
    WHOLE_OURS,
    WHOLE_PEERS,
    on,
    toy,
)
from .comparisons import (
    FIGURE_1,
    OURS,
    PAIRS,
    RANKED,
    correlations,
    coverage,
    normalized,
    ranks,
    standard_error,
)
from .peers import MORE_PEERS


def tables(results: Results) -> list[Table]:
    """Return all tables; cells with missing runs are empty."""
    return [
        set_table(results, "RMSE: mean and standard error over splits", scored, "rmse"),
        set_table(results, "NLL: mean and standard error over splits", scored, "nll"),
        set_table(results, "Coverage of 90 % intervals, all splits together, in %", covered),
        set_table(results, "Fit, seconds on one thread: mean and standard error", scored, "fit seconds"),
        figure_1(results),
        beside_defaults(results, "rmse"),
        beside_defaults(results, "nll"),
        figure_2(results, "pearson"),
        figure_2(results, "spearman"),
        learning_curves(results),
        whole_table(results),
        toy_table(results),
        curve_table(results),
    ]


def scored(results: Results, case: str, measure: str) -> str:
    values = results.values(case, measure)
    error = f" ({standard_error(values):.2g})" if len(values) > 1 else ""
    return f"{results.mean(case, measure):.4g}{error}"


def covered(results: Results, case: str, _measure: str) -> str:
    return f"{100 * coverage(results, case):.1f}"


def ranked(results: Results, name: str, measure: str) -> str:
    return f"{ranks(results, measure)[name]:.2f}" if name in RANKED[measure] else ""


def set_table(results: Results, title: str, cell: Callable[[Results, str, str], str], measure: str = "") -> Table:
    """Return a measure by contestants and sets; for a ranked measure also the mean rank over the seven sets."""
    columns, rows = ["contestant", *SEVEN, UNIQUE], []
    for name in (*CONTESTANTS, *MORE_PEERS):
        row = [or_empty(cell, results, on(data, name), measure) for data in (*SEVEN, UNIQUE)]
        if measure in RANKED:
            row.append(or_empty(ranked, results, name, measure))
        if any(row):
            rows.append([name, *row])
    return Table(title, columns + ["mean rank"] * (measure in RANKED), rows)


def figure_1(results: Results) -> Table:
    """Return the normalized scores of the paper's methods and of ours over the seven sets."""
    methods = (OURS, "GP-RFM-diag-Laplace", *FIGURE_1)
    columns, rows = ["method"], [[name] for name in methods]
    for measure in ("rmse", "nll"):
        columns += [f"{measure.upper()}: median", f"{measure.upper()}: mean"]
        try:
            found = normalized(results, methods, measure)
        except MissingResult:
            found = {}
        for row in rows:
            row += [f"{value:.3f}" for value in found[row[0]].mean(axis=0)] if found else ["", ""]
    return Table("Normalized as in Figure 1, sets weighing the same (0 best, 1 worst)", columns, rows)


def beside_defaults(results: Results, measure: str) -> Table:
    """Return the paper's two methods and our default on the splits that all have, with the default's paired gain."""
    methods = ("GP-RFM-Laplace", "GP-ARD-Laplace", OURS)

    def row(data: str) -> list[str]:
        values = [results.values(on(data, name), measure) for name in methods]
        shared = min(map(len, values))
        *printed, ours = (found[:shared] for found in values)
        gains = [shown([a - b for a, b in zip(theirs, ours, strict=True)]) for theirs in printed]
        return [*(f"{sum(found) / shared:.4g}" for found in (*printed, ours)), *gains, str(shared)]

    rows = []
    for data in SEVEN:
        try:
            rows.append([data, *row(data)])
        except MissingResult:
            continue
    gains = (f"gain of the default over {name}, 95 %" for name in methods[:-1])
    title = f"As printed beside our default: {measure.upper()} on the same splits"
    return Table(title, ("set", *methods, *gains, "splits"), rows)


def figure_2(results: Results, kind: str) -> Table:
    """Return the correlations of the diagonals for each pair of methods: median and range over splits."""

    def cell(data: str, pair: tuple[str, str]) -> str:
        found = sorted(correlations(results, data, pair, kind))
        return f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"

    rows = [[" and ".join(pair), *(or_empty(cell, data, pair) for data in SEVEN)] for pair in PAIRS]
    title = f"Figure 2: {kind.capitalize()} correlation of importances, median (least to largest) over splits"
    return Table(title, ("pair", *SEVEN), rows)


def learning_curves(results: Results) -> Table:
    """Return the RMSE by number of rows, for a full metric, a diagonal one, and length scales by likelihood."""
    sizes = (*CURVE_SIZES, MOST_ROWS)
    rows = [
        [f"{data}: {name}", *(or_empty(scored, results, on(data, name, n), "rmse") for n in sizes)]
        for data in CURVED
        for name in CURVE
    ]
    return Table("RMSE as rows are added", ("method", *(f"n = {n}" for n in sizes)), rows)


def whole_table(results: Results) -> Table:
    """Return the measures of the large sets with all their training rows, on one split."""
    measures = ("rmse", "nll", "fit seconds")
    columns = [(data, measure) for data in LARGE for measure in measures]
    rows = [
        [name, *(or_empty(scored, results, on(data, name, WHOLE), measure) for data, measure in columns)]
        for name in (*WHOLE_OURS, *WHOLE_PEERS)
    ]
    titles = (f"{data}: {measure}" for data, measure in columns)
    return Table("All rows of kin8nm and power, one split", ("contestant", *titles), rows)


def toy_table(results: Results) -> Table:
    """Return the toys' errors on new rows, in units of the targets' deviation, and the correlation of the metric."""
    measures = ("rmse", "median absolute error", "correlation", "fit seconds")
    rows = []
    for function in ("square", "wave"):
        for d in TOY_COLUMNS:
            for name in ("RFM", *TOY_METHODS):
                row = [or_empty(scored, results, toy(function, name, d), measure) for measure in measures]
                rows += [[f"{function}, d = {d}: {name}", *row]] if any(row) else []
    return Table(f"Toys, n = {TOY_ROWS}", ("toy", *measures), rows)


def curve_table(results: Results) -> Table:
    """Return the correlation of RFM's metric with the true block, by the number of rows."""
    rows = [
        [str(d), *(or_empty(scored, results, toy("square", "RFM", d, n), "correlation") for n in CURVE_ROWS)]
        for d in TOY_COLUMNS
    ]
    title = "Square: correlation of RFM's metric with the true block"
    return Table(title, ("d", *(f"n = {n}" for n in CURVE_ROWS)), rows)
