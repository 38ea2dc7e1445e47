"""What one split cannot tell: how much the score depends on the split, and whether more rows would help."""

import warnings
from typing import Any

import numpy as np

from mercer.app.projects.baselines import Answers
from mercer.app.projects.metrics_of_draws import METRICS, score
from mercer.app.projects.score_intervals import clusters_of, compare
from mercer.app.projects.stages import Fit
from mercer.app.projects.table_split import SplitPlan, split_rows
from mercer.app.projects.watch import Watch
from mercer.exceptions import DataWarning
from mercer.tables import TabularModel

# A learning curve has models of these shares of the training rows, and the model of all of them.
SHARES = (0.125, 0.25, 0.5)
# A learning curve has no point for fewer rows than this.
FEWEST_ROWS = 20
# The search of each fit gets this part of the time that is left.
PART = 0.25


def answers_of(task: str, fitted: TabularModel, table: Any, name: str = "") -> Answers:
    """Return the predictions of a model for rows."""
    if task == "regression":
        return Answers(name, np.asarray(fitted.predict(table)))
    return Answers(name, fitted.predict(table), None, fitted.predict_proba(table), np.array(fitted.classes_))


def repeated_scores(
    task: str,
    fit: Fit,
    table: Any,
    y: np.ndarray,
    plan: SplitPlan,
    test_size: float,
    repeats: int,
    random: np.random.RandomState,
    watch: Watch,
) -> list[dict[str, float]]:
    """Return the scores on further splits, each with a new fit of the model.

    Parameters
    ----------
    task : {"regression", "classification"}
    fit : callable of (rows, seconds)
    table : data frame
    y : ndarray of shape (n,)
    plan : SplitPlan
        There is only one split by time, so that there are no further scores for it.
    test_size : float
    repeats : int
        The number of splits, including the first.
    random : RandomState
        Draws the splits.
    watch : Watch
    """
    if repeats > 1 and plan.times is not None:
        warnings.warn("there is only one split by time, so repeats are left out.", DataWarning, stacklevel=3)
        return []
    found = []
    for place in range(2, repeats + 1):
        train, test = split_rows(y, task, test_size, random, plan)
        watch.begin(f"split {place} of {repeats}")
        if place > 2 and not watch.allows(watch.passed() / place):
            break
        answers = answers_of(task, fit(train, watch.share(PART)), table.iloc[test])
        found.append({metric: score(metric, y[test], answers) for metric in METRICS[task]})
    return found


def learning_curve(
    metric: str,
    task: str,
    fit: Fit,
    fitted: TabularModel,
    table: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    plan: SplitPlan,
    random: np.random.RandomState,
    watch: Watch,
) -> list[dict[str, Any]]:
    """Return the scores of models that have learned from fewer rows, all on the same rows left out.

    Parameters
    ----------
    metric : str
    task : {"regression", "classification"}
    fit : callable of (rows, seconds)
    fitted : TabularModel
        The model that has learned from all rows of `train`.
    table : data frame
    y : ndarray of shape (n,)
    train, test : ndarray of int
    plan : SplitPlan
        If rows are split by time, the latest rows of `train` are learned from; otherwise they are drawn at random.
    random : RandomState
    watch : Watch

    Returns
    -------
    list of dict
        `rows`, `score`, and how much better the model of all rows is: `better_by`, and the ends of a paired 90 %
        interval, `low` and `high`. The last entry is the model of all rows, with 0 for these three.
    """
    order = random.permutation(train)
    if plan.times is not None:
        order = train[np.argsort(-plan.times[train], kind="stable")]
    own, clusters = answers_of(task, fitted, table.iloc[test]), clusters_of(plan, test)
    found = []
    for share in SHARES:
        some = np.sort(order[: round(share * len(train))])
        if len(some) < FEWEST_ROWS or (task == "classification" and len(np.unique(y[some])) < len(np.unique(y[train]))):
            continue
        watch.begin(f"learning from {len(some):,} rows, for the learning curve")
        fewer = answers_of(task, fit(some, watch.share(PART)), table.iloc[test])
        gain = compare(metric, y[test], own, [fewer], random, clusters)
        if gain:
            ends = {key: gain[key] for key in ("better_by", "low", "high")}
            found.append({"rows": len(some), "score": score(metric, y[test], fewer), **ends})
    last = {"rows": len(train), "score": score(metric, y[test], own), "better_by": 0.0, "low": 0.0, "high": 0.0}
    return [*found, last] if found else []
