"""The race: the best of the screen learn their metric anew on a part of the rows, and are judged on the others.

With the metric fixed, a leave-one-out prediction is honest, and it is known in closed form.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.linalg import in_parallel, ridge_leave_one_out, threads_for
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.metric_learning import relearned
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.screen import SCREEN_ROWS
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate, tuned

# Rows on which plans are judged.
JUDGE_ROWS = 1500
# Standard errors by which a setting must be behind the best to leave the race.
FAR_BEHIND = 4.0
# Up to so many rows, metrics are learned anew in so many folds; beyond, on one half for the other half.
FOLDS = ((400, 5), (700, 3))


class Judgment(NamedTuple):
    """A kernel and a ridge whose metric has not seen the rows that it is judged on.

    Attributes
    ----------
    iterate : Iterate
    rows : ndarray of shape (m,)
        The rows of the table that a machine of them stands on.
    judged : ndarray of int
        Which of those had no part in the metric.
    """

    iterate: Iterate
    rows: np.ndarray
    judged: np.ndarray


class Trial(NamedTuple):
    """A plan and its predictions of rows that had no part in its metric.

    Attributes
    ----------
    plan : Plan
    left_out : LeftOut
    scores : ndarray of shape (n,)
        How good each prediction is.
    rows : ndarray of shape (n,)
        Which rows of the table of the race they are.
    judgments : list of Judgment
        The machines that the predictions are of.
    """

    plan: Plan
    left_out: LeftOut
    scores: np.ndarray
    rows: np.ndarray
    judgments: list[Judgment]

    @property
    def score(self) -> float:
        """The mean score of the rows."""
        return float(self.left_out.weights @ self.scores / self.left_out.weights.sum())


Split = tuple[np.ndarray, np.ndarray]
"""Rows that metrics are learned on, and rows that they are judged on."""


def splits(n: int) -> list[Split]:
    """Return which rows metrics are learned on and which rows they are judged on, for n rows in random order."""
    folds = next((folds for most, folds in FOLDS if n <= most), None)
    if folds is None:
        half = n // 2
        return [(np.arange(half), np.arange(half, n))]
    if n == 1:
        return [(np.arange(1), np.arange(1))]
    folds = min(folds, n)
    place = np.arange(n) % folds
    return [(np.flatnonzero(place != fold), np.flatnonzero(place == fold)) for fold in range(folds)]


def judged(search: Search, plan: Plan, table: Table, split: tuple[np.ndarray, np.ndarray]) -> tuple[LeftOut, Judgment]:
    """Predict rows that had no part in the metric of a plan.

    The metric is learned anew on one part of the rows. Under that metric the machine of all rows is solved, and its
    leave-one-out predictions of the other part are returned.
    """
    learn, judge = split
    Z, part, floor = table.warped(plan.setting.warp), table.take(learn), search.fitter.smallest_ridge
    out_of_time = search.deadline.is_over
    last = relearned(plan.iterates, plan.setting.metric, part, Z[learn], floor, search.freedom, out_of_time)[-1]
    if len(learn) > 2 * SCREEN_ROWS:
        last = tuned(last.kernel, last.ridge, [(part, Z[learn])], search.fitter, search.freedom)
    solution = ridge_leave_one_out(last.kernel.matrix(Z), table.y, last.ridge, table.weights)
    return LeftOut.from_solution(solution, table).rows(judge), Judgment(last, np.arange(len(table)), judge)


class Running(NamedTuple):
    """A plan in the race, with its predictions so far."""

    plan: Plan
    parts: list[LeftOut]
    judgments: list[Judgment]


def race(search: Search, table: Table, plans: Sequence[Plan]) -> list[Trial]:
    """Judge plans on rows that had no part in their metrics; return those that reached the end, the best first.

    After each split, plans that are far behind the best leave: they would have no share in an average.
    """
    running = [Running(plan, [], []) for plan in plans]
    judged_rows: list[np.ndarray] = []
    with threads_for(len(table)):
        for split in splits(len(table)):
            if judged_rows and search.deadline.is_over(0.6):
                break
            running = near_the_best(search.fitter, over_a_split(search, table, running, split))
            judged_rows.append(split[1])
    rows = np.concatenate(judged_rows)
    trials = []
    for plan, parts, judgments in running:
        left_out = LeftOut.joined(parts).rows(np.argsort(rows))
        trials.append(Trial(plan, left_out, search.fitter.row_scores(left_out), np.sort(rows), judgments))
    return sorted(trials, key=lambda trial: -trial.score)


def over_a_split(search: Search, table: Table, running: list[Running], split: Split) -> list[Running]:
    """Return the plans with their predictions of one more part of the rows: the first, and others while time lasts."""

    def gone_on(place: int) -> list[Running]:
        if place > 0 and search.deadline.is_over(0.7):
            return []
        plan, parts, judgments = running[place]
        part, judgment = judged(search, plan, table, split)
        return [Running(plan, [*parts, part], [*judgments, judgment])]

    found = in_parallel(gone_on, range(len(running)), search.n_jobs)
    return [entry for entries in found for entry in entries]


def near_the_best(fitter: Fitter, running: list[Running]) -> list[Running]:
    """Return the plans whose scores so far are within some standard errors of the best, paired row by row."""
    if len(running) == 1:
        return running
    joined = [LeftOut.joined(entry.parts) for entry in running]
    scores = [fitter.row_scores(left_out) for left_out in joined]
    weights = joined[0].weights
    best = scores[int(np.argmax([weights @ score for score in scores]))]
    return [
        entry
        for entry, score in zip(running, scores, strict=True)
        if not is_clearly_better(best, score, weights, errors=FAR_BEHIND)
    ]


def simplest_of_the_best(trials: Sequence[Trial]) -> Trial:
    """Return the simplest trial that the best one does not clearly beat on the judged rows."""
    best = max(trials, key=lambda trial: trial.score)
    near = [
        trial
        for trial in trials
        if trial is best or not is_clearly_better(best.scores, trial.scores, best.left_out.weights)
    ]
    return min(near, key=lambda trial: trial.plan.setting.complexity())
