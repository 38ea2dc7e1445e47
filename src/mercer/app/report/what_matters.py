"""What matters to a model: how much worse it is without each column, and how predictions move with a column."""

import warnings
from typing import Any

import numpy as np

from mercer.app.projects import TablePrediction
from mercer.app.report.figures import figure
from mercer.app.report.judgment_figures import Drawn
from mercer.app.report.markup import Html, paragraph, table, tag
from mercer.app.report.page import Section
from mercer.app.report.prediction_figures import importances_figure, metric_figure
from mercer.app.report.words import HEADINGS, listed, percent, significant
from mercer.explain import EffectCurve, effect_curve
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, percent_axes, tidy

# The most columns whose effect is drawn, and the most rows from which it is computed.
MOST_EFFECTS, MOST_ROWS = 4, 1000
# If no rows were left out to tell which columns are needed, columns with a larger importance than this are drawn.
SMALLEST_SHARE = 0.05
# The most labels of categories on an axis that can be read.
MOST_TICKS = 24


def what_matters(workflow: TablePrediction, frame: Any, random_state: Any) -> Section:
    """Return the section on the columns, their effects in their own units, and the metric.

    Parameters
    ----------
    workflow : TablePrediction
    frame : data frame
        Rows with the inputs, from which the effects are computed.
    random_state : int, RandomState instance or None
    """
    parts = _needs(workflow)
    effects = [figure_of_effect(workflow, curve) for curve in effects_of(workflow, frame, random_state)]
    if effects:
        parts += [
            tag("h3", "How predictions move with a column"),
            paragraph(
                "Each curve shows what a value adds to the mean prediction while the other columns stay near what they "
                "are (accumulated local effects), with a 90% band."
            ),
            *effects,
        ]
    return Section("looks", "What matters?", [*parts, *_shares(workflow)])


def effects_of(workflow: TablePrediction, frame: Any, random_state: Any) -> list[EffectCurve]:
    """Return the effect curves of the columns that matter most. A column of one value has no curve."""
    known = frame.reindex(columns=workflow.columns_)
    curves: list[EffectCurve] = []
    for name in ranked(workflow):
        if len(curves) == MOST_EFFECTS or workflow.kinds_.get(name) not in ("number", "date", "category"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                curves.append(effect_curve(workflow.model_, known, name, max_rows=MOST_ROWS, random_state=random_state))
        except ValueError:
            continue  # a column of one value, or of very many levels
    return curves


def ranked(workflow: TablePrediction) -> list[str]:
    """Return the columns that matter most: by how much is lost without them, or else by their importance."""
    lost = [entry["column"] for entry in workflow.needs_ if entry["column"] in workflow.kinds_ and entry["low"] > 0]
    return lost or [name for name, share in workflow.importances_.items() if share > SMALLEST_SHARE]


def figure_of_effect(workflow: TablePrediction, curve: EffectCurve) -> Html:
    """Return a figure of one effect curve, in the units of the column and of the target."""
    units = {name: reading.get("unit") or "" for name, reading in workflow.readings_.items()}
    is_class = workflow.task_ == "classification"
    output = curve.output if is_class else workflow.target_

    def draw() -> Drawn:
        ax = axes_or_new(None, figsize=(5.2, 3.1))
        ax.axhline(0.0, color="0.4", linewidth=0.9, linestyle="--")
        if curve.column == "category":
            places = np.arange(len(curve.values))
            reach = [curve.effect - curve.lower, curve.upper - curve.effect]
            ax.errorbar(places, curve.effect, yerr=reach, fmt="o", color=CATEGORIES[0], markersize=4.5)
            labels = [shorten(label, 16) for label in labels_of(curve)]
            step = max(1, len(places) // MOST_TICKS)
            turned = {"rotation": 45, "ha": "right"} if len(places) > 4 else {}
            ax.set_xticks(places[::step], labels[::step], **turned)
        else:
            values = curve.values.astype("datetime64[D]") if curve.column == "date" else curve.values.astype(np.float64)
            ax.plot(values, curve.effect, color=CATEGORIES[0], linewidth=1.5)
            ax.fill_between(values, curve.lower, curve.upper, color=CATEGORIES[0], alpha=0.22, linewidth=0)
            if curve.column == "date":
                ax.tick_params(axis="x", rotation=30)
        if is_class:
            percent_axes(ax.yaxis)
        ax.set_xlabel(_with_unit(shorten(curve.name, 40), units.get(curve.name, "")))
        ax.set_ylabel(_with_unit(shorten(f"effect on {output}", 34), "" if is_class else units[workflow.target_]))
        tidy(ax)
        return Drawn(ax)

    return figure(draw, f"{curve.name}: {in_words(curve, is_class=is_class, output=output)}")


def in_words(curve: EffectCurve, *, is_class: bool, output: str) -> str:
    """Return where a curve is highest and lowest, for readers who do not see it."""
    text = (lambda value: percent(value)) if is_class else significant
    low, high = int(np.argmin(curve.effect)), int(np.argmax(curve.effect))
    labels = labels_of(curve)
    return (
        f"at {labels[high]} it adds most to the {output} ({text(curve.effect[high])}), and at {labels[low]} least "
        f"({text(curve.effect[low])})."
    )


def labels_of(curve: EffectCurve) -> list[str]:
    """Return the values along a curve as text."""
    missing = [value is None or value != value for value in curve.values]
    return ["missing" if gone else label for gone, label in zip(missing, curve.labels, strict=True)]


def _with_unit(text: str, unit: str) -> str:
    return f"{text} ({unit})" if unit else text


def _needs(workflow: TablePrediction) -> list[Html]:
    if not workflow.needs_:
        return []
    score = HEADINGS["rmse" if workflow.task_ == "regression" else "log_loss"]
    needed = [entry for entry in workflow.needs_ if entry["low"] > 0]
    idle = [entry["column"] for entry in workflow.needs_ if entry["low"] <= 0]
    said = (
        f"The figure shows by how much the {score} on rows left out grows when the values of a column are shuffled "
        "among the rows, so that the column carries no information."
    )
    if needed:
        said += f" The model needs {listed([repr(entry['column']) for entry in needed[:5]])} most."
    else:
        said += (
            " For no column is this growth clearly above 0, so these rows do not show that the model needs any one of "
            "them."
        )
    if idle and needed:
        more = "" if len(idle) <= 5 else f" and {len(idle) - 5} more"
        said += f" Whether it needs {', '.join(repr(name) for name in idle[:5])}{more} cannot be told from these rows."
    rows = [
        [entry["column"], significant(entry["grows_by"]), significant(entry["low"]), significant(entry["high"])]
        for entry in workflow.needs_
    ]
    return [
        paragraph(said),
        figure(
            lambda: _draw_needs(workflow, score),
            f"Growth of the {score} when each column is shuffled, with 90% intervals.",
        ),
        tag(
            "details",
            tag("summary", "The same as a table"),
            table(["column", f"{score} grows by", "90%: from", "to"], rows, label="What is lost without each column"),
        ),
    ]


def _draw_needs(workflow: TablePrediction, score: str) -> Drawn:
    entries = workflow.needs_
    ax = axes_or_new(None, figsize=(5.4, 1.1 + 0.3 * len(entries)))
    mean, low, high = (np.array([entry[key] for entry in entries]) for key in ("grows_by", "low", "high"))
    places = np.arange(len(entries))
    ax.axvline(0.0, color="0.4", linewidth=0.9, linestyle="--")
    ax.errorbar(mean, places, xerr=[mean - low, high - mean], fmt="o", color=CATEGORIES[0], markersize=4.5)
    ax.set_yticks(places, [shorten(entry["column"], 28) for entry in entries])
    ax.set_ylim(len(entries) - 0.4, -0.6)
    ax.set_xlabel(f"growth of the {score}")
    ax.tick_params(axis="y", length=0)
    tidy(ax)
    return Drawn(ax)


def _shares(workflow: TablePrediction) -> list[Html]:
    """Return what the model itself shows: importances of the columns, its metric, and combinations of columns."""
    shares = workflow.importances_
    if not shares or sum(shares.values()) <= 0:
        return [paragraph("A discriminant weighs all inputs alike: no metric was learned that would tell them apart.")]
    top = [f"{name} ({percent(share)})" for name, share in list(shares.items())[:3]]
    parts = [
        tag("h3", "How far predictions move"),
        paragraph(
            "The figure shows how far predictions move when a column gets the value of another row, as shares of all "
            f"columns. The largest shares: {listed(top)}."
        ),
        importances_figure(shares),
        *metric_figure(workflow.model_),
    ]
    if workflow.combinations_:
        rows = [
            [f"direction {i + 1}", percent(entry["share"]), _terms(entry["terms"])]
            for i, entry in enumerate(workflow.combinations_)
        ]
        parts += [
            tag("h3", "Combinations that count"),
            paragraph(
                "These are the leading directions of the learned metric, with all columns on one scale: the prediction "
                "changes along them. Columns with the same sign add up; columns with opposite signs are compared."
            ),
            table(["", "share", "combination"], rows, label="Leading directions of the metric"),
        ]
    return parts


def _terms(terms: Any) -> str:
    return " ".join(f"{'+' if weight >= 0 else '−'} {abs(weight):.2f} {name}" for name, weight in terms)
