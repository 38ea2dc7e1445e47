"""`mercer reproduce`: test the papers' claims, and print the papers' numbers beside ours in one table."""

import math
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

import mercer
from mercer.app.cli.checkout import enter_checkout
from mercer.app.cli.errors import FAILED
from mercer.app.cli.output import new_table, notes, out_console, print_json

STYLES = {"held": "green", "in part": "cyan", "not held": "red", "error": "bold red", "not run": "yellow"}


def run(
    paper: str | None,
    quick: bool,
    seeds: int | None,
    only: str,
    fresh: bool,
    time_limit: float | None,
    results: Path | None,
    kept: bool,
    not_run: bool,
    as_json: bool,
) -> None:
    """List the experiments, or run one or all of them and print whether their claims held."""
    experiments = enter_checkout() / "experiments"
    # `experiments` is part of the source tree and not of the package, so that it is imported here, by its name.
    reproduction = import_module("experiments.reproduction")
    if paper is None and not quick:
        if seeds is not None or only or fresh or kept or time_limit is not None:
            raise ValueError("which experiment? Give its name, or all, or --quick for all with small settings.")
        return show_list(reproduction, experiments, as_json)
    warn_of_other_library(experiments.parent)
    results = experiments / "results" if results is None else results
    seconds = None if time_limit is None else 60 * time_limit
    options = reproduction.Options(quick, seeds, only, fresh, seconds, kept)
    names = reproduction.chosen(reproduction.ALL if paper is None else paper, experiments)
    made: dict[str, Any] = {}
    try:
        with notes():
            for name, report in reproduction.reproduce_each(names, results, options, experiments):
                made[name] = report
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        raise
    if as_json:
        print_json(reproduction.as_documents(made, results, quick))
    else:
        show(reproduction, made, results, quick, not_run)
    if not all(not isinstance(report, str) and reproduction.went_well(report) for report in made.values()):
        raise typer.Exit(FAILED)


def show_list(reproduction: Any, experiments: Path, as_json: bool) -> None:
    """Print the experiments, how long each takes on one core, and every claim of the papers with its verdict."""
    found, claims = reproduction.listed(experiments), reproduction.listed_verdicts()
    if as_json:
        return print_json({"experiments": found, "claims": claims})
    table = new_table("experiment", "what is put to the test", "quick", "full")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "left"
    for entry in found:
        times = (duration(entry[f"{mode}_minutes"]) for mode in ("quick", "full"))
        table.add_row(entry["name"], entry["about"], *times)
    console = out_console()
    console.print(table)
    console.print("Times are for one core; ? marks what was not yet run as a whole.")
    console.print("mercer reproduce --quick   runs all with small settings")
    console.print("mercer reproduce NAME      runs one in full; the name all runs all")
    console.print("Results are kept: a stopped run continues when it is called again.")
    show_claims(console, claims)


def show_claims(console: Any, claims: list[dict[str, Any]]) -> None:
    """Print a line for each claim of the papers, judged by the results in the repository, and count the verdicts."""
    table = new_table("where", "claim", "printed", "ours", "verdict", title="What the papers claim, and what was found")
    for column in table.columns[:3]:
        column.justify = "left"
    for name in dict.fromkeys(claim["paper"] for claim in claims):
        table.add_section()
        table.add_row(Text(name, style="bold"))
        for claim in claims:
            if claim["paper"] == name:
                verdict = Text(claim["verdict"], style=STYLES.get(claim["verdict"], ""))
                table.add_row(claim["place"], claim["claim"], claim["printed"], claim["ours"], verdict)
    console.print(table)
    counts = {status: sum(claim["verdict"] == status for claim in claims) for status in STYLES}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    console.print(f"{len(claims)} claims: {told}. Use --json to see the reasons.")


def duration(minutes: float | None) -> str:
    """Return a duration as text, such as "12 min" or "3 h"; "?" if it is not known."""
    if minutes is None:
        return "?"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def show(reproduction: Any, made: Mapping[str, Any], results: Path, quick: bool, not_run: bool) -> None:
    """Print one table for all papers, what was not run, and remarks."""
    console = out_console()
    reports = {name: report for name, report in made.items() if not isinstance(report, str)}
    table = new_table("claim", "paper", "ours", "spread", "verdict", title=title(quick))
    for report in reports.values():
        add_paper(table, report.experiment.title, reproduction.lines_of(report, not_run=not_run))
    if reports:
        console.print(table)
    left = sum(reproduction.not_run_count(report) for report in reports.values())
    if left and not not_run:
        counted = f"{reproduction.count_of(left, 'claim')} {'was' if left == 1 else 'were'}"
        console.print(f"{counted} not run with these settings (--not-run lists them).")
    for name, report in made.items():
        for remark in [report] if isinstance(report, str) else reproduction.remarks(report):
            print(f"note: {name}: {remark}", file=sys.stderr)
    if reports:
        console.print(f"Reports with every case: {results}", soft_wrap=True)


def title(quick: bool) -> str:
    """Return the title of the table over all papers."""
    if quick:
        return "The papers' numbers and ours, with small settings, in which a claim may fail that holds in full"
    return "The papers' numbers and ours"


def add_paper(table: Table, name: str, lines: list[Any]) -> None:
    """Add the lines of a paper under its name. The reason why a claim did not hold stands below the claim."""
    table.add_section()
    table.add_row(Text(name, style="bold"))
    if not lines:
        table.add_row("nothing was measured")
    for line in lines:
        claim = Text(line.text)
        if line.reason:
            claim.append(f"\nwhy: {line.reason}", style="italic")
        paper = line.paper if isinstance(line.paper, str) else blank(line.paper)
        status = Text(line.status, style=STYLES.get(line.status, ""))
        table.add_row(claim, paper, blank(line.mean), "" if line.spread is None else f"{line.spread:.2g}", status)


def blank(value: float | None) -> str:
    """Return a number with four significant digits; "" for None, and "-" if it is not finite."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def warn_of_other_library(root: Path) -> None:
    """Print a note if the experiments and the library are of different source trees."""
    library = Path(mercer.__file__).resolve().parent
    if library != (root / "src" / "mercer").resolve():
        print(f"note: the experiments of {root} are run with the library in {library}", file=sys.stderr)
