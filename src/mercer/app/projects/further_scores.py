"""What one split cannot tell: how much the score hangs on the split, and whether more rows would help."""

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

# The shares of the rows to learn from that a learning curve is made of; the last is the model that is scored anyway.
SHARES = (0.125, 0.25, 0.5)
# Fewer rows make no point of it.
FEWEST_ROWS = 20
# The part of the time left that the search of each fit gets.
PART = 0.25


def answers_of(task: str, fitted: TabularModel, table: Any, name: str = "") -> Answers:
    """Return what a model answers for rows."""
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
    """Return the scores of the model on further splits, each with a fit of its own.

    Parameters
    ----------
    task : {"regression", "classification"}
    fit : callable of (rows, seconds)
    table : data frame
    y : ndarray of shape (n,)
    plan : SplitPlan
        In time there is one split only: the last rows.
    test_size : float
    repeats : int
        How many splits there are to be with the first.
    random : RandomState
    watch : Watch
    """
    if repeats > 1 and plan.times is not None:
        warnings.warn("rows are split by time, in one way only: repeats are left out.", DataWarning, stacklevel=3)
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
    """Return the score on the same rows left out of models that have learned from fewer rows.

    Parameters
    ----------
    metric : str
    task : {"regression", "classification"}
    fit : callable of (rows, seconds)
    fitted : TabularModel
        That has learned from all rows to learn from.
    table : data frame
    y : ndarray of shape (n,)
    train, test : ndarray of int
    plan : SplitPlan
        Of rows in time the last ones are kept.
    random : RandomState
    watch : Watch

    Returns
    -------
    list of dict
        `rows`, `score`, and how much better the model of all rows is: `better_by`, `low` and `high`, a paired 90 %
        interval; those of the last are 0.
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
