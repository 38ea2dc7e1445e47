"""The figures of a prediction, drawn by the library's Displays or by scikit-learn's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

from mercer.app.projects.number_prediction import ROUNDING
from mercer.app.report.evidence import Evidence
from mercer.app.report.figures import figure
from mercer.app.report.judgment_figures import class_reliability_figure
from mercer.app.report.markup import Html, paragraph
from mercer.plots import ImportancesDisplay, IntervalDisplay, MetricDisplay, ReliabilityDisplay
from mercer.plots.labels import shorten
from mercer.plots.reliability import LEVELS
from mercer.plots.style import CATEGORIES, axes_or_new, tidy
from mercer.tables import TabularModel

# A confusion matrix of more classes, or a metric of more columns, cannot be read.
MOST_CLASSES, MOST_COLUMNS = 20, 30


def answers_figure(judged: Evidence) -> Html:
    """Return predictions against the true targets: numbers, with intervals if there are any, or a confusion matrix."""
    if judged.probabilities is not None:
        return _matrix(judged)
    if judged.std is None:
        return figure(lambda: _errors(judged), "Predictions against the truth; on the dashed line they are right.")
    return figure(
        lambda: IntervalDisplay.from_predictions(
            judged.true, judged.predicted, judged.std, interval=np.column_stack([judged.lower, judged.upper])
        ),
        f"Predictions for {judged.noun} with 90% intervals, against the truth; on the dashed line they are right.",
    )


def calibration_figure(judged: Evidence) -> Html:
    """Return how often intervals hold the target, or answers are right, against what the model says."""
    if judged.probabilities is not None:
        return class_reliability_figure(judged)
    if judged.std is None:
        return Html("")
    return figure(
        lambda: _reliability_of_intervals(judged),
        "How many targets the intervals hold, against how many they should hold. Below the line the intervals are too "
        "narrow, above it too wide.",
    )


def importances_figure(shares: Mapping[str, float]) -> Html:
    """Return the importance of each column as bars."""
    return figure(
        lambda: ImportancesDisplay(list(shares.values()), list(shares)).plot(),
        "How much each column counts, as its share in the mean squared distance of two rows.",
    )


def metric_figure(model: TabularModel) -> list[Html]:
    """Return the learned metric as a heat map, or a sentence if it is diagonal."""
    metric = model.metric_
    names = [str(name) for name in model.encoder_.get_feature_names_out()]
    if metric.kind != "full" or len(names) < 2:
        return [paragraph("The metric is diagonal: each column counts by itself, as the shares above show.")]
    M = metric.matrix(len(names))
    top = np.sort(np.argsort(-np.diag(M), kind="stable")[:MOST_COLUMNS])
    shown = [shorten(names[j], 24) for j in top]
    less = f" The {len(top)} largest of {len(names)} encoded columns are shown." if len(top) < len(names) else ""
    return [
        figure(
            lambda: MetricDisplay(M[np.ix_(top, top)], shown).plot(title=""),
            f"The learned metric. Off the diagonal, columns count together (red) or against each other (blue).{less}",
        )
    ]


def _errors(judged: Evidence) -> Any:
    ax = axes_or_new(None, figsize=(5.6, 4.6))
    display = PredictionErrorDisplay.from_predictions(
        judged.true,
        judged.predicted,
        kind="actual_vs_predicted",
        subsample=1000,
        random_state=0,
        ax=ax,
        scatter_kwargs={"color": CATEGORIES[0], "s": 10, "alpha": 0.6},
    )
    ax.set_xlabel("predicted target")
    ax.set_ylabel("observed target")
    tidy(ax)
    return display


def _matrix(judged: Evidence) -> Html:
    # All classes that the fit has not seen share a row of the matrix.
    names = [*judged.classes, "not seen"]
    places = np.union1d(judged.true, judged.predicted)
    if len(places) > MOST_CLASSES:
        return paragraph(f"There are {len(places)} classes, too many for a matrix of answers.")

    def draw() -> Any:
        side = 2.2 + 0.5 * len(places)
        ax = axes_or_new(None, figsize=(side + 0.8, side))
        display = ConfusionMatrixDisplay.from_predictions(
            judged.true,
            judged.predicted,
            labels=places,
            cmap="Blues",
            ax=ax,
            xticks_rotation=90,
            values_format="d",
            display_labels=[shorten(names[i], 20) for i in places],
            colorbar=False,
        )
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        return display

    return figure(draw, f"How many {judged.noun} of each class were predicted as which; the diagonal is right.")


def _reliability_of_intervals(judged: Evidence) -> ReliabilityDisplay:
    """Draw the share of targets that the model's intervals hold at each level."""
    observed = np.array([np.mean(judged.narrowest <= level + ROUNDING) for level in LEVELS])
    inside = np.mean((judged.lower <= judged.true) & (judged.true <= judged.upper))
    return ReliabilityDisplay(LEVELS, observed, len(judged.true), float(inside)).plot()
