"""How much the score varies between splits, and whether more rows would help, in words and as a curve."""

import numpy as np

from mercer.app.projects import TablePrediction
from mercer.app.report.figures import figure
from mercer.app.report.judgment_figures import Drawn
from mercer.app.report.markup import Html, paragraph
from mercer.app.report.words import HEADINGS, significant
from mercer.plots.style import CATEGORIES, axes_or_new, tidy


def further_parts(workflow: TablePrediction) -> list[Html]:
    """Return the results of further fits, if these were asked for."""
    parts = [paragraph(text) for text in (repeats_in_words(workflow), curve_in_words(workflow)) if text]
    return [*parts, curve_figure(workflow)] if workflow.curve_ else parts


def repeats_in_words(workflow: TablePrediction) -> str:
    """Return a sentence on the scores over all splits; "" if there was only one."""
    if not workflow.repeats_:
        return ""
    name = workflow.metric_
    values = np.array([workflow.scores_[0][name], *(entry[name] for entry in workflow.repeats_)], dtype=np.float64)
    return (
        f"Over {len(values)} splits its {HEADINGS[name]} is {significant(values.mean())} on average, and ranges from "
        f"{significant(values.min())} to {significant(values.max())}."
    )


def curve_in_words(workflow: TablePrediction) -> str:
    """Return a sentence on whether more rows would help; "" if that was not asked for."""
    if not workflow.curve_:
        return ""
    *_, half, last = workflow.curve_
    name = HEADINGS[workflow.metric_]
    scores = f"{significant(half['score'])} to {significant(last['score'])}"
    change = f"from {half['rows']:,} to {last['rows']:,} rows, the {name} changes from {scores}"
    if half["low"] > 0:
        return f"More rows would probably help: {change}, more than chance explains."
    if half["high"] < 0:
        return f"More rows did not help: {change}, which is worse."
    return f"Whether more rows would help cannot be told: {change}, which may be chance."


def curve_figure(workflow: TablePrediction) -> Html:
    """Return a figure of the score against the number of rows learned from."""
    name = HEADINGS[workflow.metric_]

    def draw() -> Drawn:
        ax = axes_or_new(None, figsize=(5.0, 3.2))
        rows, scores = ([entry[key] for entry in workflow.curve_] for key in ("rows", "score"))
        ax.plot(rows, scores, color=CATEGORIES[0], marker="o", linewidth=1.5, markersize=4.5)
        ax.set_xscale("log")
        ax.set_xticks(rows, [f"{count:,}" for count in rows])
        ax.minorticks_off()
        ax.set_xlabel("rows learned from")
        ax.set_ylabel(f"{name} on rows left out")
        tidy(ax)
        return Drawn(ax)

    return figure(draw, f"Learning curve: the {name} on the same rows left out, by how many rows were learned from.")
