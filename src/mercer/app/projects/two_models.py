"""Compare two saved models on the same rows: the scores of both, and whether one is better by more than chance."""

from typing import Any, NamedTuple

import numpy as np

from mercer.app.files.tables import check_columns
from mercer.app.projects.baselines import Answers
from mercer.app.projects.further_scores import answers_of
from mercer.app.projects.metrics_of_draws import METRICS, check_metric
from mercer.app.projects.metrics_of_draws import score as score_of
from mercer.app.projects.new_rows import needed_columns, read_like_fit
from mercer.app.projects.score_intervals import FEWEST, compare
from mercer.app.projects.table_prediction import TablePrediction
from mercer.app.projects.table_target import as_classes, as_numbers, class_values
from mercer.exceptions import DataFileError


class TwoModels(NamedTuple):
    """The scores of two models on the same rows.

    Attributes
    ----------
    rows : int
    are_left_out : bool
        Whether these are rows that both fits have left out. Otherwise they are all rows of the data with a target, from
        which the models may have learned.
    metric : str
    scores : list of dict
        `name` and scores of the first and of the second model.
    difference : dict
        How much better the first model is; see `score_intervals.compare`.
    """

    rows: int
    are_left_out: bool
    metric: str
    scores: list[dict[str, Any]]
    difference: dict[str, Any]


def compare_models(
    first: TablePrediction, second: TablePrediction, data: Any, names: tuple[str, str], metric: str, random_state: Any
) -> TwoModels:
    """Score two models of the same target on the same rows.

    Parameters
    ----------
    first, second : fitted TablePrediction
        Both of the same target and task.
    data : data frame or Table
        It has the target.
    names : tuple of two str
        Names of the models for scores and messages.
    metric : str
        The score by which they are compared; "auto" is rmse or log_loss.
    random_state : int
        Seed of the draws for the interval.
    """
    if (first.target_, first.task_) != (second.target_, second.task_):
        raise DataFileError(
            f"{names[0]} predicts {first.target_!r} ({first.task_}), {names[1]} {second.target_!r} ({second.task_}): "
            "only models of the same target and task can be compared."
        )
    task, target = first.task_, first.target_
    metric = check_metric(metric, task)
    frame = read_like_fit(data, first.readings_)
    check_columns(frame.columns, [target], "target column")
    kept = _left_out_by_both(first, second, frame)
    if kept is not None:
        truth, answers = kept
    else:
        known = frame[frame[target].notna()]
        truth = as_numbers(known[target]) if task == "regression" else as_classes(known[target])
        answers = [_answers(model, known) for model in (first, second)]
    answers = [own._replace(name=name) for own, name in zip(answers, names, strict=True)]
    scores = [{"name": own.name, **{m: score_of(m, truth, own) for m in METRICS[task]}} for own in answers]
    difference = compare(metric, truth, answers[0], [answers[1]], np.random.RandomState(random_state))
    return TwoModels(len(truth), kept is not None, metric, scores, difference)


def _answers(model: TablePrediction, frame: Any) -> Answers:
    check_columns(frame.columns, needed_columns(model.columns_, model.kinds_))
    return answers_of(model.task_, model.model_, frame.reindex(columns=model.columns_))


def _left_out_by_both(
    first: TablePrediction, second: TablePrediction, frame: Any
) -> tuple[np.ndarray, list[Answers]] | None:
    """Return what both models have kept of the rows of this table that both left out; None if there are too few."""
    n_seen = first.n_rows_ + first.dropped_rows_
    if not first.held_out_ or not second.held_out_ or len(frame) != n_seen:
        return None
    rows = np.intersect1d(first.held_out_["rows"], second.held_out_["rows"])
    if len(rows) < FEWEST or max(rows) >= len(frame):
        return None
    a, b = (_kept_of(model.held_out_, rows) for model in (first, second))
    if not np.array_equal(a["true"], b["true"]):
        return None
    if not _has_targets(frame[first.target_], a["rows"], a["true"], first.task_):
        return None
    return a["true"], [
        Answers("", kept["predicted"], None, kept.get("probabilities"), kept.get("classes")) for kept in (a, b)
    ]


def _has_targets(column: Any, rows: np.ndarray, true: np.ndarray, task: str) -> bool:
    """Return whether a column has these targets in these rows."""
    known = column.notna().to_numpy()
    if not known[rows].all():
        return False
    if task == "regression":
        return np.array_equal(as_numbers(column.iloc[rows]), true)
    # All rows together tell whether 1.0 is a fraction, or a whole number beside missing values.
    there = class_values(column[known])[np.cumsum(known)[rows] - 1]
    return [str(label) for label in there] == [str(label) for label in true]


def _kept_of(held_out: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Return what a model has kept of some of its left-out rows."""
    places = np.flatnonzero(np.isin(held_out["rows"], rows))
    places = places[np.argsort(np.asarray(held_out["rows"])[places])]
    by_row = ("rows", "true", "predicted", "probabilities")
    return {
        name: np.asarray(kept)[places] if name in by_row and kept is not None else kept
        for name, kept in held_out.items()
    }
