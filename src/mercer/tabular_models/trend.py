"""What all rows of a very large table say together, on landmarks, before machines in leaves see to the rest.

A leaf of 1500 rows cannot see a signal that is weak beside the noise, however many leaves there are. A machine on a
thousand landmarks averages the noise of all rows, and cannot follow what is rough. So a trend on landmarks is taken
from the targets where leave-one-out predictions in leaves become better by it, and what is left is searched anew:
signals that were hidden behind larger ones show themselves in the residuals.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY
from mercer.kernels import BandwidthKernel, Kernel
from mercer.linalg import threads_for
from mercer.tabular_models.finish import on_more_rows
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.landmark_table import LandmarkFit, Landmarks, drawn_rows, landmark_machine
from mercer.tabular_models.leaves import LEAF_ROWS, QUICK, JudgedLeaves
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.race import Trial
from mercer.tabular_models.recursion import next_metric
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import BANDWIDTH_STEP, Iterate

# Tables with fewer rows are cut into leaves as they are: to compare trends would take longer than all the rest.
FEWEST_TREND_ROWS = 40_000
# One trend may follow on the residuals of another, at most so many.
MOST_TRENDS = 3
# Landmarks of a trend: one for so many rows, so that each row has little say in its own prediction, and no more than
# 800, whose products over a million rows take about a minute.
ROWS_A_LANDMARK, MOST_LANDMARKS = 100, 800
# Standard errors by which predictions in leaves must be better with a trend.
SURE_ERRORS = 2.0
# Kernels, metrics and bandwidths are compared on one in so many of the rows, between these bounds, and on so many
# landmarks, by the errors of so many left-out rows; so many kernels begin anew.
COMPARED_PART, FEWEST_COMPARED, MOST_COMPARED, COMPARED_LANDMARKS, COMPARED_LEFT_OUT = 4, 20_000, 100_000, 500, 5000
COMPARED_KERNELS = 2
# Steps of the recursion from the identity, rows that gradients are averaged over, steps of a bandwidth to either side.
RECURSION_STEPS, GRADIENT_ROWS, BANDWIDTH_STEPS = 3, 2000, 3


class Trend(NamedTuple):
    """A machine on landmarks, and what it predicts for the rows of the table, of shape (n, c).

    The values are y - (y - f) / (1 - df / n), with df the degrees of freedom: by generalized cross-validation the
    residuals are then as large as those of rows that the machine has not seen.
    """

    fit: LandmarkFit
    values: Tensor


class Start(NamedTuple):
    """Where a trend may begin: a warp of the columns, a kernel with its ridge, and steps of a recursion from there."""

    warp: Any
    iterate: Iterate
    steps: int


def starts_of(search: Search, plan: Plan, plans: Sequence[Plan], some: Table) -> list[Start]:
    """Return the plan that was judged best, with the metric that few rows have learned, and radial kernels without one.

    A metric of few rows has given up the columns whose signal they cannot tell from noise, and nothing brings these
    back. So the recursion of feature machines begins anew under the identity, with all rows to learn from.
    """
    starts = [Start(plan.setting.warp, on_more_rows(search, plan, some), 0)]
    identities: dict[type, Setting] = {}
    for other in plans:
        if other.setting.metric == "identity" and is_radial(other.setting.kernel):
            identities.setdefault(type(other.setting.kernel), other.setting)
    for setting in list(identities.values())[:COMPARED_KERNELS]:
        # Few rows see noise alone where a signal is weak, and would have the bandwidth endless.
        median = setting.kernel.resolved(some.warped(setting.warp), 0)
        starts.append(Start(setting.warp, Iterate(median, search.ridge), RECURSION_STEPS))
    return starts


def is_radial(kernel: Kernel) -> bool:
    """Return whether a kernel has a bandwidth and gradients with one metric for all columns."""
    has_bandwidth = any(isinstance(leaf, BandwidthKernel) for leaf in kernel.leaves())
    return has_bandwidth and kernel.has_gradient_weights and kernel.has_closed_form_gradient


def trend_of(
    search: Search,
    plan: Plan,
    starts: Sequence[Start],
    table: Table,
    fresh: np.ndarray,
    random: np.random.RandomState,
) -> Trend | None:
    """Fit all rows on landmarks; return None unless leaves are predicted clearly better once that is taken out.

    Parameters
    ----------
    search : Search
    plan : Plan
        The best on rows that had no part in its metric, by which leaves are predicted.
    starts : sequence of Start
        Where a trend may begin; the first is that plan.
    table : Table
        All rows.
    fresh : ndarray of bool, of shape (n,)
        Rows that had no part in the metric of the plan; only these are judged.
    random : RandomState

    Notes
    -----
    O(n m (d + m)) for m landmarks.
    """
    last = starts[0].iterate
    leaves = JudgedLeaves.drawn(last, plan, table, fresh, random, LEAF_ROWS)
    fit = on_landmarks(search, starts, table, random)
    if fit is None:
        return None
    trend = Trend(fit, trend_values(fit, table))

    def judged(targets: Table) -> Trial:
        own = leaves._replace(table=targets)
        return own.judged(search, plan, own.tuned(search, plan, last, QUICK))

    before, after = judged(table), judged(table.without(trend.values))
    weights = before.left_out.weights
    return trend if is_clearly_better(after.scores, before.scores, weights, errors=SURE_ERRORS) else None


def beats_its_trend(fitter: Fitter, left_out: LeftOut) -> bool:
    """Return whether rows are predicted clearly better than by the trend below the machine alone, or by their mean."""
    alone = left_out._replace(mean=left_out.trend, unit_variance=np.ones_like(left_out.unit_variance))
    return is_clearly_better(fitter.row_scores(left_out), fitter.row_scores(alone), left_out.weights)


def on_landmarks(
    search: Search, starts: Sequence[Start], table: Table, random: np.random.RandomState
) -> LandmarkFit | None:
    """Return the machine on landmarks whose kernel, metric and bandwidth have the best scores of left-out rows.

    Kernels are compared on a part of the rows and fewer landmarks. With many more rows than landmarks, a row has no say
    of its own in a metric, and leave-one-out errors are honest about it. None if there is nothing to predict.
    """
    seed, ridge = int(random.randint(2**31 - 1)), None if search.freedom.ridge else search.ridge
    n_landmarks = min(MOST_LANDMARKS, max(1, len(table) // ROWS_A_LANDMARK))
    few = Landmarks(min(n_landmarks, COMPARED_LANDMARKS), "uniform", seed, WORKING_MEMORY, COMPARED_LEFT_OUT)
    n_compared = min(max(len(table) // COMPARED_PART, FEWEST_COMPARED), MOST_COMPARED)
    part = table.take(drawn_rows(len(table), n_compared, random)).in_single_precision()
    with threads_for(n_landmarks):
        best: tuple[float, Any, LandmarkFit] | None = None
        for start in starts:
            if best is not None and search.deadline.is_over(0.3):
                break
            for score, fit in recursion(search, start, part, few, ridge):
                if best is None or score > best[0]:
                    best = (score, start.warp, fit)
        if best is None or not beats_its_trend(search.fitter, best[2].left_out):
            return None
        kernel, many = best[2].machine.kernel, Landmarks(n_landmarks, "uniform", seed, WORKING_MEMORY)
        return landmark_machine(Iterate(kernel, best[2].machine.ridge), best[1], table, many, search.fitter, ridge)


def recursion(
    search: Search, start: Start, part: Table, landmarks: Landmarks, ridge: float | None
) -> Iterator[tuple[float, LandmarkFit]]:
    """Yield every step of a recursive feature machine on landmarks, with its score of left-out rows."""
    iterate = start.iterate
    for step in range(start.steps + 1):
        score, fit = with_best_bandwidth(search, iterate, start.warp, part, landmarks, ridge)
        yield score, fit
        if step < start.steps:
            machine = fit.machine
            rows = part.take(np.arange(min(len(part), GRADIENT_ROWS)))
            alpha = torch.from_numpy(machine.alpha).to(part.y)
            basis = machine.basis.to(part.y)
            metric = next_metric(machine.kernel, rows.warped(start.warp), basis, alpha, "diagonal", rows.weights)
            iterate = Iterate(machine.kernel.with_metric(metric), machine.ridge)


def with_best_bandwidth(
    search: Search, iterate: Iterate, warp: Any, part: Table, landmarks: Landmarks, ridge: float | None
) -> tuple[float, LandmarkFit]:
    """Return the machine of the best bandwidth near a start, and its score: larger ones first, then smaller ones."""

    def fitted(step: int) -> tuple[float, LandmarkFit]:
        rescaled = iterate._replace(kernel=iterate.kernel.rescaled(BANDWIDTH_STEP**step))
        found = landmark_machine(rescaled, warp, part, landmarks, search.fitter, ridge)
        left_out = found.left_out
        return float(np.average(search.fitter.row_scores(left_out), weights=left_out.weights)), found

    best = fitted(0)
    for direction in (1, -1) if search.freedom.bandwidth else ():
        here = best[0]
        for step in range(1, BANDWIDTH_STEPS + 1):
            found = fitted(direction * step)
            if found[0] <= best[0]:
                break
            best = found
        if best[0] > here:
            break
    return best


def trend_values(fit: LandmarkFit, table: Table) -> Tensor:
    """Return the values of a trend at the rows of its table, see `Trend`."""
    fitted = torch.from_numpy(fit.machine.mean(table.X, device=table.device)).to(table.y)
    return table.y - (table.y - fitted) / (1.0 - fit.degrees_of_freedom / len(table))
