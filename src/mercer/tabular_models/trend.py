"""Trends of very large tables: a machine on landmarks is fitted to all rows before machines in leaves.

A leaf of 1500 rows cannot detect a signal that is weak compared with the noise, however many leaves there are. A
machine on a thousand landmarks averages the noise of all rows, but cannot follow a rough function. A trend on landmarks
is therefore subtracted from the targets if this improves leave-one-out predictions in leaves. The search is then
repeated on the residuals, where signals that were hidden by larger ones can be found.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY
from mercer.kernels import BandwidthKernel, Kernel
from mercer.linalg import threads_for
from mercer.rows import drawn_rows
from mercer.tabular_models.deadline import STARTS_OF_A_TREND_UNTIL
from mercer.tabular_models.finish import on_more_rows
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.landmark_table import LandmarkFit, Landmarks, landmark_machine
from mercer.tabular_models.leaves import LEAF_ROWS, QUICK, JudgedLeaves
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.race import Trial
from mercer.tabular_models.recursion import next_metric
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import BANDWIDTH_STEP, Iterate

# Tables with fewer rows have no trend, since comparing trends would take longer than everything else.
FEWEST_TREND_ROWS = 40_000
# The largest number of trends, each of which is fitted to the residuals of those before.
MOST_TRENDS = 3
# A trend has one landmark for ROWS_A_LANDMARK rows, so that each row has little effect on its own prediction, and at
# most MOST_LANDMARKS landmarks, whose products over a million rows take about a minute.
ROWS_A_LANDMARK, MOST_LANDMARKS = 100, 800
# Predictions in leaves must be better with a trend by this many standard errors.
SURE_ERRORS = 2.0
# Kernels, metrics and bandwidths are compared on one in COMPARED_PART of the rows, but between FEWEST_COMPARED and
# MOST_COMPARED rows, on at most COMPARED_LANDMARKS landmarks, by the errors of COMPARED_LEFT_OUT left-out rows. In
# addition to the best plan, COMPARED_KERNELS kernels start from the identity metric.
COMPARED_PART, FEWEST_COMPARED, MOST_COMPARED, COMPARED_LANDMARKS, COMPARED_LEFT_OUT = 4, 20_000, 100_000, 500, 5000
COMPARED_KERNELS = 2
# Number of steps of the recursion from the identity, of rows over which gradients are averaged, and of steps of the
# bandwidth to either side.
RECURSION_STEPS, GRADIENT_ROWS, BANDWIDTH_STEPS = 3, 2000, 3


class Trend(NamedTuple):
    """A machine on landmarks, and its values at the rows of the table, of shape (n, c).

    The values are y - (y - f) / (1 - df / n), where df are the degrees of freedom. By generalized cross-validation, the
    residuals are then as large as those of rows that the machine was not fitted to.
    """

    fit: LandmarkFit
    values: Tensor


class Start(NamedTuple):
    """A start of the search for a trend: a warp, a kernel with its ridge, and the number of steps of a recursion."""

    warp: Any
    iterate: Iterate
    steps: int


def starts_of(search: Search, plan: Plan, plans: Sequence[Plan], some: Table) -> list[Start]:
    """Return the starts of the search for a trend: the best plan with its metric, and radial kernels with the identity.

    A metric that was learned from few rows ignores columns whose signal they cannot distinguish from noise. The
    recursion of feature machines therefore also starts from the identity, and learns from many more rows.
    """
    starts = [Start(plan.setting.warp, on_more_rows(search, plan, some), 0)]
    identities: dict[type, Setting] = {}
    for other in plans:
        if other.setting.metric == "identity" and is_radial(other.setting.kernel):
            identities.setdefault(type(other.setting.kernel), other.setting)
    for setting in list(identities.values())[:COMPARED_KERNELS]:
        # If the signal is weak, few rows contain only noise, and a bandwidth tuned on them would be far too large.
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
    """Fit a trend on landmarks to all rows; return None unless subtracting it clearly improves predictions in leaves.

    Parameters
    ----------
    search : Search
    plan : Plan
        The best plan on rows that its metric was not learned from. It predicts in leaves, with and without the trend.
    starts : sequence of Start
        The starts of the search for a trend; the first is this plan.
    table : Table
        All rows.
    fresh : ndarray of bool, of shape (n,)
        The rows that the metric of the plan was not learned from; only these are judged.
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
    """Return whether left-out rows are predicted clearly better than by their trend, or their mean, alone."""
    alone = left_out._replace(mean=left_out.trend, unit_variance=np.ones_like(left_out.unit_variance))
    return is_clearly_better(fitter.row_scores(left_out), fitter.row_scores(alone), left_out.weights)


def on_landmarks(
    search: Search, starts: Sequence[Start], table: Table, random: np.random.RandomState
) -> LandmarkFit | None:
    """Return the machine on landmarks whose kernel, metric and bandwidth have the best scores of left-out rows.

    Kernels are compared on a part of the rows and with fewer landmarks. Since there are many more rows than landmarks,
    a single row has little effect on a metric, and leave-one-out errors are reliable. None is returned if no machine is
    clearly better than the trend, or the mean, before.
    """
    seed, ridge = int(random.randint(2**31 - 1)), None if search.freedom.ridge else search.ridge
    n_landmarks = min(MOST_LANDMARKS, max(1, len(table) // ROWS_A_LANDMARK))
    few = Landmarks(min(n_landmarks, COMPARED_LANDMARKS), "uniform", seed, WORKING_MEMORY, COMPARED_LEFT_OUT)
    n_compared = min(max(len(table) // COMPARED_PART, FEWEST_COMPARED), MOST_COMPARED)
    part = table.take(drawn_rows(len(table), n_compared, random)).in_single_precision()
    with threads_for(n_landmarks):
        best: tuple[float, Any, LandmarkFit] | None = None
        for start in starts:
            if best is not None and search.deadline.is_over(STARTS_OF_A_TREND_UNTIL):
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
    """Return the score and the machine of the best bandwidth near a start; larger bandwidths are tried first."""

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
    """Return the values of a trend at the rows of its table; see `Trend`."""
    fitted = torch.from_numpy(fit.machine.mean(table.X, device=table.device)).to(table.y)
    return table.y - (table.y - fitted) / (1.0 - fit.degrees_of_freedom / len(table))
