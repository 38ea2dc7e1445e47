"""Score a model, beside simple ones, on rows that it has not learned from: everything that one split tells."""

from typing import Any, NamedTuple

import numpy as np

from mercer.app.projects.baselines import Answers, baselines_of_split
from mercer.app.projects.class_scores import recall_by_class
from mercer.app.projects.column_needs import column_needs
from mercer.app.projects.number_prediction import judge_numbers, predict_numbers
from mercer.app.projects.score_intervals import clusters_of, compare, score_intervals
from mercer.app.projects.table_scores import regression_scores, scores_of
from mercer.app.projects.table_split import SplitPlan
from mercer.app.projects.why_wrong import badness_of, explain_wrong
from mercer.tables import TabularModel

# At most this many left-out rows are kept for a report.
MOST_KEPT = 5000


class ScoredSplit(NamedTuple):
    """What one split tells about a model. TablePrediction documents the fields under the same names.

    Attributes
    ----------
    scores : list of dict
    intervals : dict
    compared_with, compared_with_guess : dict
    recalls : list of dict
    needs, wrong : list of dict
    held_out : dict
        All but `encoded`.
    """

    scores: list[dict[str, Any]]
    intervals: dict[str, list[float]]
    compared_with: dict[str, Any]
    compared_with_guess: dict[str, Any]
    recalls: list[dict[str, Any]]
    needs: list[dict[str, Any]]
    wrong: list[dict[str, Any]]
    held_out: dict[str, Any]


NOT_SCORED = ScoredSplit([], {}, {}, {}, [], [], [], {})


def score_split(
    task: str,
    metric: str,
    fitted: TabularModel,
    table: Any,
    y: np.ndarray,
    rows: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    learned_from: np.ndarray,
    plan: SplitPlan,
    seed: int,
    random: np.random.RandomState,
) -> ScoredSplit:
    """Score a model and simple models on the rows left out.

    Parameters
    ----------
    task : {"regression", "classification"}
    metric : str
        The score by which the model is compared with the simple ones.
    fitted : TabularModel
    table : data frame
    y : ndarray of shape (n,)
    rows : ndarray of int of shape (n,)
        The positions of the rows of `table` in the user's table.
    train, test : ndarray of int
        The rows that the simple models learn from, and the rows to score on.
    learned_from : ndarray of int
        The rows that the model has learned from: `train`, unless its fit was stopped.
    plan : SplitPlan
    seed : int
        The seed of the simple models, and of the draws for intervals.
    random : RandomState
        Draws the rows that are kept, if there are too many.
    """
    kept = np.sort(random.permutation(len(test))[:MOST_KEPT])
    learned, left_out, truth = table.iloc[train], table.iloc[test], y[test]
    name = f"Mercer {type(fitted.estimator_).__name__}"
    held_out: dict[str, Any] = {"rows": rows[test][kept], "true": truth[kept]}
    recalls: list[dict[str, Any]] = []
    if task == "regression":
        mean, *sure = predict_numbers(fitted, left_out)
        spread, narrowest = (None, None) if sure[0] is None else judge_numbers(fitted, left_out, truth)
        scores = regression_scores(truth, mean, spread)
        names = ("predicted", "std", "lower", "upper", "narrowest")
        parts = (None if part is None else part[kept] for part in (mean, *sure, narrowest))
        held_out |= dict(zip(names, parts, strict=True))
        answers = Answers(name, mean)
    else:
        predicted, probabilities = fitted.predict(left_out), fitted.predict_proba(left_out)
        answers = Answers(name, predicted, None, probabilities, np.array(fitted.classes_))
        scores = scores_of(task, truth, answers)
        recalls = recall_by_class(truth, predicted)
        held_out |= {"predicted": predicted[kept], "probabilities": probabilities[kept]}
        held_out["classes"] = np.array(fitted.classes_)
    X, X_test = (np.asarray(fitted.encoder_.transform(part)) for part in (learned, left_out))
    baselines = baselines_of_split(task, X, X_test, y, train, test, plan.times, seed)
    draws, clusters = np.random.RandomState(seed), clusters_of(plan, test)
    badness = badness_of(truth, answers.predicted, answers.probabilities, answers.classes)
    return ScoredSplit(
        [{"name": name, **scores}, *(scores_of(task, truth, other) for other in baselines)],
        score_intervals(task, truth, answers, draws, clusters, metric),
        compare(metric, truth, answers, baselines, draws, clusters),
        compare(metric, truth, answers, [other for other in baselines if other.is_guess], draws, clusters),
        recalls,
        column_needs(task, fitted, left_out, truth, draws),
        explain_wrong(task, fitted, table, y, rows, learned_from, test, badness),
        held_out,
    )
