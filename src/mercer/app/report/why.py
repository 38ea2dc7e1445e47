"""Why the model was wrong: the left-out rows that it predicted worst, and what its answers were based on."""

from typing import Any

import numpy as np

from mercer.app.projects import TablePrediction
from mercer.app.report.markup import Html, paragraph, table, tag
from mercer.app.report.page import Section
from mercer.app.report.words import listed, percent, significant
from mercer.plots.labels import shorten

# A prediction with a support below this is an extrapolation.
LEAST_SUPPORT = 0.01
# Longer values are cut to this many characters, so that two tables fit side by side.
LONGEST = 24


def why_wrong(workflow: TablePrediction) -> Section | None:
    """Return the section on the three worst rows; None if none of them was kept."""
    parts: list[Html] = []
    for found in workflow.wrong_:
        place = np.flatnonzero(np.asarray(workflow.held_out_["rows"]) == found["row"])
        if len(place):  # if many rows were left out, only some of them are kept
            parts += _of_row(workflow, found, int(place[0]))
    if not parts:
        return None
    lead = paragraph(
        "These are the rows left out about which the model was most wrong. Each value that differs from the typical "
        "one (the median of the numbers, the most frequent category) was replaced by the typical one in turn. The last "
        "column says how far the actual value moves the answer away from that."
    )
    return Section("why", "Why was it wrong?", [lead, *parts])


def _of_row(workflow: TablePrediction, found: dict[str, Any], place: int) -> list[Html]:
    kept, is_class = workflow.held_out_, workflow.task_ == "classification"
    true, predicted = kept["true"][place], kept["predicted"][place]
    if is_class:
        sure = percent(float(kept["probabilities"][place].max()))
        said = f"Its class is {true}, and {predicted} was predicted with a probability of {sure}."
    else:
        said = f"The true value is {significant(float(true))}, and {significant(float(predicted))} was predicted."
    leaned = listed([f"row {entry['row']} ({_target(entry['target'], is_class)})" for entry in found["like"]])
    said += f" The training rows that counted most for the prediction: {leaned}."
    if found["support"] is not None and found["support"] < LEAST_SUPPORT:
        said += " No training row is like this one: the prediction is an extrapolation."
    rows = []
    for entry in found["columns"]:
        values = [shorten(entry[key], LONGEST) for key in ("value", "typical")]
        rows.append([entry["column"], *values, _signed(entry["moves_by"], is_class)])
    moved = "probability moves by" if is_class else "prediction moves by"
    label = f"What moved the answer for row {found['row']}"
    parts = [tag("h3", f"Row {found['row']}"), paragraph(said)]
    return [*parts, table(["column", "here", "typical", moved], rows, label=label)] if rows else parts


def _target(text: str, is_class: bool) -> str:
    return text if is_class else significant(float(text))


def _signed(value: float, is_class: bool) -> str:
    text = percent(abs(value)) if is_class else significant(abs(value))
    return f"{'+' if value >= 0 else '−'}{text}"
