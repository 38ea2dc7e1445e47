"""What all rows of a very large table say together, on landmarks, before machines in leaves see to the rest.

A leaf of 1500 rows cannot see a signal that is weak beside the noise, however many leaves there are. A machine on a
thousand landmarks averages the noise of all rows, and cannot follow what is rough. So a trend on landmarks is taken
from the targets where leave-one-out predictions in leaves become better by it, and what is left is searched anew:
signals that were hidden behind larger ones show themselves in the residuals.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY
from mercer.linalg import threads_for
from mercer.tabular_models.finish import JUDGED_LEAVES, cut_into_leaves, judged_in_leaves, on_more_rows
from mercer.tabular_models.fitters import Fitter, is_clearly_better
from mercer.tabular_models.landmark_table import LandmarkFit, Landmarks, drawn_rows, landmark_machine
from mercer.tabular_models.race import Plan, Search, Trial
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import BANDWIDTH_STEP, Iterate

# One trend may follow on the residuals of another, at most so many.
MOST_TRENDS = 3
# Landmarks of a trend: one for so many rows, so that each row has little say in its own prediction, and no more than a
# thousand, whose products over a million rows take about a minute.
ROWS_A_LANDMARK, MOST_LANDMARKS = 40, 1000
# Standard errors by which predictions in leaves must be better with a trend.
SURE_ERRORS = 2.0
# The bandwidth is chosen on so many of the rows, in at most so many steps.
BANDWIDTH_ROWS, BANDWIDTH_STEPS = 20_000, 3


class Trend(NamedTuple):
    """A machine on landmarks, and what it predicts for the rows of the table, of shape (n, c).

    The values are y - (y - f) / (1 - df / n), with df the degrees of freedom: by generalized cross-validation the
    residuals are then as large as those of rows that the machine has not seen.
    """

    fit: LandmarkFit
    values: Tensor


def trend_of(
    search: Search, plan: Plan, table: Table, some: Table, fresh: np.ndarray, random: np.random.RandomState
) -> Trend | None:
    """Fit a plan to all rows on landmarks; return None unless leaves are predicted clearly better once it is taken out.

    Parameters
    ----------
    search : Search
    plan : Plan
        The best on rows that had no part in its metric.
    table : Table
        All rows.
    some : Table
        Rows in random order, on which the metric is learned.
    fresh : ndarray of bool, of shape (n,)
        Rows that are not among those; only these are judged.
    random : RandomState

    Notes
    -----
    O(n m (d + m)) for m landmarks.
    """
    last = on_more_rows(search, plan, some)
    leaves = cut_into_leaves(last, plan, table, random)
    sampled = [int(leaf) for leaf in random.permutation(leaves.partition.n_leaves)[:JUDGED_LEAVES]]
    fit = on_landmarks(search, last, plan, table, random)
    trend = Trend(fit, trend_values(fit, table))
    _, before = judged_in_leaves(search, plan, last, table, leaves, sampled, fresh, fine=False)
    _, after = judged_in_leaves(search, plan, last, table.without(trend.values), leaves, sampled, fresh, fine=False)
    weights = before.left_out.weights
    return trend if is_clearly_better(after.scores, before.scores, weights, errors=SURE_ERRORS) else None


def beats_its_trend(fitter: Fitter, trial: Trial) -> bool:
    """Return whether a machine predicts rows clearly better than the trend below it does alone."""
    left_out = trial.left_out
    alone = left_out._replace(mean=left_out.trend, unit_variance=np.ones_like(left_out.unit_variance))
    return is_clearly_better(trial.scores, fitter.row_scores(alone), left_out.weights)


def on_landmarks(
    search: Search, iterate: Iterate, plan: Plan, table: Table, random: np.random.RandomState
) -> LandmarkFit:
    """Return the machine on landmarks whose bandwidth and ridge have the best scores of left-out rows."""
    warp, ridge = plan.setting.warp, None if search.freedom.ridge else search.ridge
    n_landmarks = min(MOST_LANDMARKS, max(1, len(table) // ROWS_A_LANDMARK))
    landmarks = Landmarks(n_landmarks, "uniform", int(random.randint(2**31 - 1)), WORKING_MEMORY)
    part = table.take(drawn_rows(len(table), BANDWIDTH_ROWS, random))

    def score(step: int) -> float:
        rescaled = iterate._replace(kernel=iterate.kernel.rescaled(BANDWIDTH_STEP**step))
        left_out = landmark_machine(rescaled, warp, part, landmarks, search.fitter, ridge).left_out
        return float(np.average(search.fitter.row_scores(left_out), weights=left_out.weights))

    with threads_for(n_landmarks):
        best = climbed(score) if search.freedom.bandwidth else 0
        rescaled = iterate._replace(kernel=iterate.kernel.rescaled(BANDWIDTH_STEP**best))
        return landmark_machine(rescaled, warp, table, landmarks, search.fitter, ridge)


def climbed(score: Callable[[int], float]) -> int:
    """Return the step of the best score near 0, going up first: landmarks are sparser than the rows of a leaf."""
    best = (score(0), 0)
    for direction in (1, -1):
        for step in range(direction, direction * (BANDWIDTH_STEPS + 1), direction):
            found = (score(step), step)
            if found[0] <= best[0]:
                break
            best = found
        if best[1] != 0:
            break
    return best[1]


def trend_values(fit: LandmarkFit, table: Table) -> Tensor:
    """Return the values of a trend at the rows of its table, see `Trend`."""
    fitted = torch.from_numpy(fit.machine.mean(table.X, device=table.device)).to(table.y)
    return table.y - (table.y - fitted) / (1.0 - fit.degrees_of_freedom / len(table))
