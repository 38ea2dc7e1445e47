"""A still map of rows as the model represents them, colored by what it predicts and by how unsure it is."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.app.projects import TablePrediction
from mercer.app.projects.new_rows import read_like_fit
from mercer.app.report.evidence import sample, text_of_class
from mercer.app.report.figures import figure
from mercer.app.report.judgment_figures import Drawn
from mercer.app.report.maps import MOST_IN_LEGEND
from mercer.app.report.markup import paragraph
from mercer.app.report.model_map import map_of
from mercer.app.report.page import Section
from mercer.app.report.words import count
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, SEQUENTIAL, pyplot, tidy

# The most rows on the map, and the fewest for which there is one.
MOST_ROWS, FEWEST_ROWS = 1000, 5
MARKERS = "osD^vP"


def where_rows_lie(workflow: TablePrediction, frame: Any, random_state: Any) -> Section | None:
    """Return the section with a still map of at most 1000 rows, as `mercer explore` draws it; None for too few rows.

    Parameters
    ----------
    workflow : TablePrediction
    frame : data frame
        With the inputs.
    random_state : int, RandomState instance or None
        Draws the rows.
    """
    if len(frame) < FEWEST_ROWS:
        return None
    random = check_random_state(random_state)
    rows = sample(np.arange(len(frame)), MOST_ROWS, random)
    some = frame.iloc[rows]
    inputs = read_like_fit(some, workflow.readings_).reindex(columns=workflow.columns_)
    found = map_of(workflow.model_, inputs, random)
    answer = workflow.predict_frame(some)
    doubt = answer["std"].to_numpy(dtype=np.float64) if "std" in answer.columns else None
    if workflow.task_ == "classification":
        n_classes = len(workflow.model_.classes_)
        doubt = 1.0 - answer.to_numpy()[:, 1 : 1 + n_classes].astype(np.float64).max(axis=1)
    predicted = answer["prediction"]
    words = count(len(rows), "row")
    if len(rows) < len(frame):
        words += f" of {len(frame):,}, drawn at random"

    def draw() -> Drawn:
        width = 1 if doubt is None else 2
        axes = pyplot().subplots(1, width, figsize=(4.6 * width, 3.9), layout="constrained", squeeze=False)[1][0]
        if workflow.task_ == "regression":
            _by_number(axes[0], found.places, predicted.to_numpy(dtype=np.float64), shorten(workflow.target_, 30))
        else:
            _by_class(axes[0], found.places, np.array([text_of_class(label) for label in predicted]))
        axes[0].set_title("what the model predicts", fontsize=10)
        if doubt is not None:
            label = "standard deviation" if workflow.task_ == "regression" else "1 − largest probability"
            _by_number(axes[1], found.places, doubt, label)
            axes[1].set_title("how unsure it is", fontsize=10)
        for ax in axes:
            ax.set_xticks([])
            ax.set_yticks([])
            tidy(ax)
        return Drawn(axes[0])

    colored = "by what the model predicts" + ("" if doubt is None else " and by how unsure it is")
    parts = [
        paragraph(
            f"Each point is one of {words}. On this map {found.words}. Only nearness has a meaning: the directions of "
            "the map, and distances between far groups, have none."
        ),
        figure(draw, f"A map of {words}, colored {colored}."),
        paragraph("Open the same map with mercer explore to point at rows and see the reasons for their answers."),
    ]
    return Section("map", "Where do the rows lie?", parts)


def _by_number(ax: Any, places: np.ndarray, values: np.ndarray, label: str) -> None:
    shown = ax.scatter(*places.T, c=values, cmap=SEQUENTIAL, s=_size(len(places)), alpha=0.85, linewidths=0)
    ax.figure.colorbar(shown, ax=ax, label=label)


def _by_class(ax: Any, places: np.ndarray, labels: np.ndarray) -> None:
    """Draw classes in colors and markers. If they are too many for a legend, all but the most frequent are grey."""
    names, counts = np.unique(labels, return_counts=True)
    names = names[np.argsort(-counts, kind="stable")]
    for i, name in enumerate(names):
        inside, is_named = labels == name, i < MOST_IN_LEGEND
        ax.scatter(
            *places[inside].T,
            color=CATEGORIES[i % len(CATEGORIES)] if is_named else "0.6",
            marker=MARKERS[i // len(CATEGORIES) % len(MARKERS)],
            s=_size(len(places)),
            alpha=0.75,
            linewidths=0,
            label=shorten(str(name), 24) if is_named else None,
        )
    ax.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3)


def _size(n: int) -> float:
    return float(np.clip(8000 / n, 6.0, 24.0))
