"""Reports that compare the paper's numbers with ours, as tables on the terminal, as Markdown and as JSON."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.claims import BROKEN, HELD, NOT_HELD, NOT_RUN, Table, Verdict, average, judge, spread
from experiments.runner import Experiment, Outcome, Record, mode
from mercer import storage

STYLES = {HELD: "green", "reach": "bold green", NOT_HELD: "red", BROKEN: "bold red", NOT_RUN: "yellow"}
CLAIM_COLUMNS = ("claim", "paper", "ours", "status", "why")
CASE_COLUMNS = ("case", "seeds done", "seconds", "measures")


@dataclass(frozen=True)
class Report:
    """The verdicts, cases and tables of an experiment, ready to be shown."""

    experiment: Experiment
    quick: bool
    outcome: Outcome
    verdicts: tuple[Verdict, ...]
    tables: tuple[Table, ...] = ()


def make_report(experiment: Experiment, outcome: Outcome, quick: bool) -> Report:
    """Judge every claim by the available results, and make the experiment's own tables."""
    verdicts = tuple(judge(claim, outcome.results) for claim in experiment.claims)
    return Report(experiment, quick, outcome, verdicts, make_tables(experiment, outcome))


def make_tables(experiment: Experiment, outcome: Outcome) -> tuple[Table, ...]:
    """Return the experiment's own tables. If they raise, one table shows the error, so that the report is written."""
    if experiment.tables is None:
        return ()
    try:
        return tuple(experiment.tables(outcome.results))
    except Exception as error:
        return (Table("Tables", ("error",), [(f"{type(error).__name__}: {error}",)]),)


def number(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"


def mean_and_spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    text = number(average(values))
    return text if len(values) < 2 else f"{text} ± {number(spread(values))} (n = {len(values)})"


def claim_rows(report: Report) -> list[tuple[str, ...]]:
    return [
        (v.claim.text, number(v.claim.paper), mean_and_spread(v.values), v.status, v.reason) for v in report.verdicts
    ]


def case_summaries(report: Report) -> list[dict[str, Any]]:
    """Return for each case the seeds that are done, the seconds, the measures in the order of seeds, and the errors."""
    summaries = []
    for case in report.outcome.cases:
        tried = [report.outcome.results.records.get((case.name, seed)) for seed in range(case.seeds)]
        records = [record for record in tried if record is not None]
        done = [record for record in records if "measures" in record]
        names = dict.fromkeys(name for record in done for name in record["measures"])
        summaries.append(
            {
                "case": case.name,
                "settings": case.settings,
                "seeds": case.seeds,
                "done": len(done),
                "seeds done": [record["seed"] for record in done],
                **{name: latest_of(done, name) for name in ("commit", "machine")},
                "seconds": sum(record["seconds"] for record in records),
                "measures": {n: [r["measures"][n] for r in done if n in r["measures"]] for n in names},
                "errors": {str(r["seed"]): r["error"] for r in records if "error" in r},
            }
        )
    return summaries


def latest_of(records: Sequence[Record], name: str) -> str:
    """Return the commit or the machine of the last run of a case; empty for old journals, which have neither."""
    return next((record[name] for record in reversed(records) if record.get(name)), "")


def case_rows(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for summary in case_summaries(report):
        shown = [f"{name} {describe(values)}" for name, values in summary["measures"].items()]
        shown += [f"seed {seed} failed: {error}" for seed, error in summary["errors"].items()]
        rows.append(
            (summary["case"], f"{summary['done']} of {summary['seeds']}", f"{summary['seconds']:.1f}", "; ".join(shown))
        )
    return rows


def describe(values: Sequence[float | str]) -> str:
    """Return the mean and the spread of numbers as text; for measures that are text, the distinct texts."""
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return ", ".join(dict.fromkeys(map(str, values)))
    return mean_and_spread(numbers)


def versions(report: Report) -> dict[str, list[str]]:
    """Return every version of each library that was used; a journal that was resumed after an upgrade has several."""
    records = report.outcome.results.records.values()
    pairs = {pair for record in records for pair in record["versions"].items()}
    return {name: sorted(v for n, v in pairs if n == name) for name in sorted({n for n, _ in pairs})}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return (
        "\n".join(
            "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines
        )
        + "\n"
    )


def as_markdown(report: Report) -> str:
    libraries = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions(report).items())
    tables = "".join(f"## {t.title}\n\n{markdown_table(t.columns, t.rows)}\n" for t in report.tables)
    return (
        f"# {report.experiment.title}\n\n"
        f"`{report.experiment.name}`, {mode(report.quick)} mode. {libraries}\n\n"
        f"## Claims\n\n{markdown_table(CLAIM_COLUMNS, claim_rows(report))}\n"
        f"{tables}"
        f"## Cases\n\n{markdown_table(CASE_COLUMNS, case_rows(report))}"
    )


def as_document(report: Report) -> dict[str, Any]:
    """Return the whole report as plain values, for JSON."""
    claims = [
        {
            "text": v.claim.text,
            "paper": v.claim.paper,
            "mean": v.mean,
            "spread": v.spread,
            "values": list(v.values),
            "status": v.status,
            "reason": v.reason,
        }
        for v in report.verdicts
    ]
    return {
        "experiment": report.experiment.name,
        "title": report.experiment.title,
        "mode": mode(report.quick),
        "claims": claims,
        "tables": [{"title": t.title, "columns": t.columns, "rows": t.rows} for t in report.tables],
        "cases": case_summaries(report),
        "failed": report.outcome.failed,
        "missing": dict(report.outcome.missing),
        "remaining": report.outcome.remaining,
        "versions": versions(report),
    }


def as_json(report: Report) -> str:
    return strict_json(as_document(report))


def strict_json(value: Any) -> str:
    """Return JSON that every reader accepts: nan and infinities become text, since JSON does not have them."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [plain(inner) for inner in part]
        return str(part) if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write a file such that at any time, also after a kill, either the old or the new file is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.write_atomically(path, [text.encode("utf-8")])


def write_report(report: Report, results: Path) -> tuple[Path, Path]:
    """Write the report as Markdown and as JSON, and return both paths."""
    stem = f"{report.experiment.name}-{mode(report.quick)}"
    paths = results / f"{stem}.md", results / f"{stem}.json"
    for path, text in zip(paths, (as_markdown(report), as_json(report)), strict=True):
        write_atomically(path, text)
    return paths


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, in color if rich is installed and as plain text otherwise."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        sys.stdout.write(f"{title}\n\n{markdown_table(columns, rows)}\n")
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    # A log file is not limited to the default of 80 columns, in which the cells would be folded.
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def print_report(report: Report) -> None:
    """Print the claims, the experiment's own tables, and the cases."""
    print_table(f"{report.experiment.title} ({mode(report.quick)})", CLAIM_COLUMNS, claim_rows(report))
    for table in report.tables:
        print_table(table.title, table.columns, table.rows)
    print_table("Cases", CASE_COLUMNS, case_rows(report))
