"""The experiment's own tables: contestants by sets for every measure, Figure 1's scale, and the toys."""

from collections.abc import Callable

from experiments import MissingResult, Results, Table, or_empty

from .cases import CONTESTANTS, CURVE_ROWS, SEVEN, TOY_COLUMNS, TOY_METHODS, TOY_ROWS, UNIQUE, on, toy
from .comparisons import FIGURE_1, OURS, RANKED, coverage, normalised, ranks, standard_error


def tables(results: Results) -> list[Table]:
    """All of them; a cell whose runs are not all there is empty."""
    return [
        set_table(results, "RMSE: mean and standard error over splits", scored, "rmse"),
        set_table(results, "NLL: mean and standard error over splits", scored, "nll"),
        set_table(results, "Coverage of 90 % intervals, all splits together, in %", covered),
        set_table(results, "Fit, seconds on one thread: mean and standard error", scored, "fit seconds"),
        figure_1(results),
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
    """Contestants by sets and, for a measure with a race, the mean rank over the seven of those who are in it."""
    columns, rows = ["contestant", *SEVEN, UNIQUE], []
    for name in CONTESTANTS:
        row = [or_empty(cell, results, on(data, name), measure) for data in (*SEVEN, UNIQUE)]
        if measure in RANKED:
            row.append(or_empty(ranked, results, name, measure))
        if any(row):
            rows.append([name, *row])
    return Table(title, columns + ["mean rank"] * (measure in RANKED), rows)


def figure_1(results: Results) -> Table:
    """Normalised scores over the seven sets, of the paper's methods by both protocols and of ours."""
    methods = (OURS, "GP-RFM-Laplace", "GP-RFM-Laplace (70/30)", "GP-RFM-diag-Laplace", *FIGURE_1)
    columns, rows = ["method"], [[name] for name in methods]
    for measure in ("rmse", "nll"):
        columns += [f"{measure.upper()}: median", f"{measure.upper()}: mean"]
        try:
            found = normalised(results, methods, measure)
        except MissingResult:
            found = {}
        for row in rows:
            row += [f"{value:.3f}" for value in found[row[0]].mean(axis=0)] if found else ["", ""]
    return Table("Normalised as in Figure 1, sets weighing the same (0 best, 1 worst)", columns, rows)


def toy_table(results: Results) -> Table:
    """Errors on new rows, in units of the targets' deviation, and the metric's correlation with the truth."""
    measures = ("rmse", "median absolute error", "correlation", "fit seconds")
    rows = []
    for function in ("square", "wave"):
        for d in TOY_COLUMNS:
            for name in ("RFM", *TOY_METHODS):
                row = [or_empty(scored, results, toy(function, name, d), measure) for measure in measures]
                rows += [[f"{function}, d = {d}: {name}", *row]] if any(row) else []
    return Table(f"Toys, n = {TOY_ROWS}", ("toy", *measures), rows)


def curve_table(results: Results) -> Table:
    """How fast the full metric finds the block as rows are added."""
    rows = [
        [str(d), *(or_empty(scored, results, toy("square", "RFM", d, n), "correlation") for n in CURVE_ROWS)]
        for d in TOY_COLUMNS
    ]
    title = "Square: correlation of RFM's metric with the true block"
    return Table(title, ("d", *(f"n = {n}" for n in CURVE_ROWS)), rows)
