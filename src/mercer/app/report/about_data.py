"""The section about the data: what was read, what was left out, how the rows were split, and what is odd."""

from collections import Counter
from typing import Any

from mercer.app.files.column import in_words
from mercer.app.projects import TablePrediction
from mercer.app.projects.new_rows import UNUSED_KINDS
from mercer.app.report.markup import Html, facts, paragraph, table, tag
from mercer.app.report.page import Section
from mercer.app.report.words import count, listed, percent

SPLITS = {"random": "at random", "time": "the last ones in time", "group": "whole groups"}


def about_data(workflow: TablePrediction, frame: Any, notes: list[str]) -> Section:
    """Return the section that describes the table.

    Parameters
    ----------
    workflow : TablePrediction
    frame : data frame
        The table that the report is made with.
    notes : list of str
        What was found odd when the table was read.
    """
    kinds = Counter(workflow.kinds_.values())
    named = [f"{number} {in_words(kind, number)}" for kind, number in kinds.most_common()]
    split = f"{SPLITS[str(workflow.split_['kind'])]}: {workflow.split_['reason']}"
    if workflow.split_["column"]:
        split += f" (column {workflow.split_['column']!r})"
    rows = f"{workflow.n_rows_:,}"
    if workflow.dropped_rows_:
        rows += f", and {count(workflow.dropped_rows_, 'row')} left out that had no target"
    pairs = [("rows", rows), ("inputs", listed(named)), ("rows left out to score on", split)]
    odd = [*(finding["text"] for finding in workflow.findings_), *notes]
    parts: list[Html] = [facts(pairs)]
    if odd:
        parts += [tag("h3", "What is odd"), tag("ul", *(tag("li", _sentence(text)) for text in odd))]
    else:
        parts.append(paragraph("Nothing odd was found: no copies of rows, no identifiers, no leaks, no order in time."))
    columns = [
        [name, kind, _missing(frame, name), workflow.readings_[name]["unit"] or "–"]
        for name, kind in workflow.kinds_.items()
    ]
    summary = f"All {count(len(columns), 'input')} and their kinds" if len(columns) > 1 else "The input"
    parts.append(
        tag(
            "details",
            tag("summary", summary),
            table(["input", "kind", "missing", "unit"], columns, label="Inputs and their kinds"),
        )
    )
    if any(kind in UNUSED_KINDS for kind in kinds):
        parts.append(paragraph("Columns that are constant, or missing in all rows, are not used."))
    return Section("data", "About your data", parts)


def _missing(frame: Any, name: str) -> str:
    return percent(float(frame[name].isna().mean())) if name in frame.columns and len(frame) else "–"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
