"""The race: the best plans of the screen learn their metrics on some rows, and are judged on the others.

For a fixed metric, leave-one-out predictions have a closed form, and no row affects its own prediction.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.linalg import in_parallel, ridge_leave_one_out, threads_for
from mercer.tabular_models.deadline import PLANS_OF_A_SPLIT_UNTIL, SPLITS_UNTIL
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.metric_learning import relearned
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.screen import SCREEN_ROWS
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate, tuned

# Number of rows on which plans are judged.
JUDGE_ROWS = 1500
# A setting leaves the race if it is worse than the best by this many standard errors.
FAR_BEHIND = 4.0
# Pairs (rows, folds): up to so many rows, metrics are learned in so many folds. Beyond, one half of the rows is used
# for learning and the other half for judging.
FOLDS = ((400, 5), (700, 3))


class Judgment(NamedTuple):
    """A kernel and a ridge, and the rows they are judged on, which the metric was not learned from.

    Attributes
    ----------
    iterate : Iterate
    rows : ndarray of shape (m,)
        The rows of the table that the machine is solved on.
    judged : ndarray of int
        The positions in `rows` of those that the metric was not learned from.
    """

    iterate: Iterate
    rows: np.ndarray
    judged: np.ndarray


class Trial(NamedTuple):
    """A plan, and its predictions of rows that its metric was not learned from.

    Attributes
    ----------
    plan : Plan
    left_out : LeftOut
    scores : ndarray of shape (n,)
        The score of each prediction; larger is better.
    rows : ndarray of shape (n,)
        The rows of the table of the race that were predicted.
    judgments : list of Judgment
        The machines that made the predictions.
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
    """Predict rows that the metric of a plan is not learned from.

    The metric is learned on one part of the rows. With this metric the machine is solved on all rows, and its
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
    """Judge plans on left-out rows; return the trials that were not dropped, in decreasing order of their score.

    After each split, plans that are far worse than the best are dropped: they would have no share in an average.
    """
    running = [Running(plan, [], []) for plan in plans]
    judged_rows: list[np.ndarray] = []
    with threads_for(len(table)):
        for split in splits(len(table)):
            if judged_rows and search.deadline.is_over(SPLITS_UNTIL):
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
    """Return the plans with predictions for one more split: always the first, and the others while time is left."""

    def gone_on(place: int) -> list[Running]:
        if place > 0 and search.deadline.is_over(PLANS_OF_A_SPLIT_UNTIL):
            return []
        plan, parts, judgments = running[place]
        part, judgment = judged(search, plan, table, split)
        return [Running(plan, [*parts, part], [*judgments, judgment])]

    found = in_parallel(gone_on, range(len(running)), search.n_jobs)
    return [entry for entries in found for entry in entries]


def near_the_best(fitter: Fitter, running: list[Running]) -> list[Running]:
    """Return the plans whose scores are within some standard errors of the best, by differences in the same rows."""
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
    """Return the simplest of the trials that are not clearly worse than the best on the judged rows."""
    best = max(trials, key=lambda trial: trial.score)
    near = [
        trial
        for trial in trials
        if trial is best or not is_clearly_better(best.scores, trial.scores, best.left_out.weights)
    ]
    return min(near, key=lambda trial: trial.plan.setting.complexity())
