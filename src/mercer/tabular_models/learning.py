"""From a table to machines on all its rows: screen, race, average, fit. What RFMs and Gaussian processes share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from mercer.linalg import RidgeSolution, in_parallel
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.finish import (
    DENSE_ROWS,
    FEW_DENSE_ROWS,
    FEW_LEAVES,
    JUDGED_IN_FEW,
    JUDGED_LEAF_ROWS,
    JUDGED_LEAVES,
    LEAF_FINALISTS,
    LEAF_ROWS,
    MANY_ROWS,
    METRIC_ROWS,
    MOST_DENSE_ROWS,
    MOST_EXACT_ROWS,
    PARTITIONS,
    QUICK,
    REFINED,
    THOROUGH,
    TRIED_IN_A_LEAF,
    cut_into_leaves,
    evidence_rows_of_many,
    exact_iterate,
    judged_in_leaves,
    on_dense_rows,
    on_more_rows,
    solved,
    tuned_in_leaves,
)
from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.landmark_table import LandmarkFit, Landmarks, landmark_machine
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.race import (
    JUDGE_ROWS,
    OF_MANY_ROWS,
    SCREEN_ROWS,
    USUAL,
    Breadth,
    Judgment,
    Plan,
    Search,
    Trial,
    contenders,
    finalists,
    history_entry,
    race,
    screen,
    simplest_of_the_best,
)
from mercer.tabular_models.settings import Setting, metrics_of, warps_of
from mercer.tabular_models.table import Table
from mercer.tabular_models.trend import FEWEST_TREND_ROWS, MOST_TRENDS, beats_its_trend, starts_of, trend_of
from mercer.tabular_models.tuning import Iterate


class Space(NamedTuple):
    """What a search may choose from.

    Attributes
    ----------
    kernels : list of Kernel
    warp : str or sequence of str
    metric : str
        "auto" or one of `settings.METRICS`.
    average : bool
        Whether the best machines are averaged, or the best is taken alone.
    trends : bool
        Whether a trend on landmarks may be taken from the targets of very many rows.
    """

    kernels: list[Any]
    warp: Any
    metric: str
    average: bool
    trends: bool


class Fit(NamedTuple):
    """A machine on all rows, and what is known of it.

    Attributes
    ----------
    machine : Machine
    row_index : ndarray of shape (m,)
        Which rows of the table the machine stands on.
    left_out : LeftOut
        Predictions of rows that had no part in its metric; for the same rows as those of the machines beside it.
    evidence : EvidenceTerms
        What the log evidence of the machine is made of; the lower bound on it with landmarks.
    judged : ndarray of shape (n,)
        Which rows of the table `left_out` predicts.
    judgments : list of Judgment
        The machines behind `left_out`, on rows of the table; none with landmarks.
    """

    machine: Machine
    row_index: np.ndarray
    left_out: LeftOut
    evidence: EvidenceTerms
    judged: np.ndarray
    judgments: list[Judgment]


class Learned(NamedTuple):
    """The machines to be averaged, the largest share first, and what was tried on the way.

    Attributes
    ----------
    fits : list of Fit
    history : list of dict
        Everything that was tried.
    is_complete : bool
        Whether there was time for everything.
    trend : list of Fit
        Machines on landmarks whose sum was taken from the targets first, each with a share of 1; usually none.
    """

    fits: list[Fit]
    history: list[dict[str, Any]]
    is_complete: bool
    trend: list[Fit]

    @property
    def machines(self) -> list[Machine]:
        """The machines alone."""
        return [fit.machine for fit in self.fits]


class Rows(NamedTuple):
    """A table, and some of its rows in random order, on which metrics are learned.

    Attributes
    ----------
    table : Table
    some : Table
    judged : Table
        The first of `some`, on which settings are judged.
    few : Table
        The first of those, on which all settings are tried.
    place : ndarray
        Which rows of the table `some` are.
    """

    table: Table
    some: Table
    judged: Table
    few: Table
    place: np.ndarray

    @classmethod
    def drawn(cls, table: Table, random: np.random.RandomState) -> "Rows":
        """Draw the rows that are not all of a table; of many rows half at least have no part in any metric."""
        # Distinct rows come in an order of their own; in random order the first few are a sample of all.
        most = min(len(table) // 2, MOST_DENSE_ROWS) if len(table) > MANY_ROWS else METRIC_ROWS
        place = random.permutation(len(table))[:most]
        # Of few rows these are one table, with one copy of every warp.
        some = table.take(place)
        judged = some if len(some) <= JUDGE_ROWS else table.take(place[:JUDGE_ROWS])
        few = judged if len(judged) <= SCREEN_ROWS else table.take(place[:SCREEN_ROWS])
        return cls(table, some, judged, few, place)

    def fresh(self) -> np.ndarray:
        """Return which rows of the table are not among `some`."""
        fresh = np.ones(len(self.table), dtype=bool)
        fresh[self.place] = False
        return fresh


def learn(
    search: Search, space: Space, table: Table, landmarks: Landmarks | None, exact: bool, random: np.random.RandomState
) -> Learned:
    """Choose settings, learn their metrics, and fit the machines of the chosen ones on all rows.

    Parameters
    ----------
    search : Search
    space : Space
    table : Table
    landmarks : Landmarks or None
        If given, all machines stand on landmarks.
    exact : bool
        Whether machines of many rows are to be solved in one piece, not in leaves.
    random : RandomState
        Draws rows.
    """
    rows, trend = Rows.drawn(table, random), list[Fit]()
    is_dense, is_cut = len(table) > MANY_ROWS, not exact and len(table) > MOST_EXACT_ROWS
    plans = tried = screened(search, space, rows.few, OF_MANY_ROWS if is_dense and landmarks is None else USUAL)
    if landmarks is not None:
        fits, trials = fit_on_landmarks(search, space, rows, finalists(plans), landmarks)
    elif is_dense:
        if space.trends and is_cut and len(table) >= FEWEST_TREND_ROWS:
            trend, rows, plans = after_trends(search, space, rows, plans, random)
        fits, trials = fit_many_rows(search, space, rows, contenders(plans, TRIED_IN_A_LEAF), is_cut, random)
        if not fits:
            fits = [trend.pop()]
    else:
        fits, trials = fit_in_one_piece(search, space, rows, finalists(plans))
    history = [history_entry(plan, len(rows.few)) for plan in tried]
    history += [history_entry(trial.plan, len(trial.rows), trial.score) for trial in trials]
    fits = sorted(fits, key=lambda fit: -fit.machine.share)
    return Learned(fits, history, not search.deadline.was_asked_in_vain, trend)


def screened(search: Search, space: Space, few: Table, breadth: Breadth) -> list[Plan]:
    """Try all settings of a space on a few rows; return the plans, the best first."""
    identities = [Setting(kernel, warp) for warp in warps_of(space.warp, few, WARPS) for kernel in space.kernels]
    metrics = [metrics_of(space.metric, setting.kernel, few) for setting in identities]
    plans = screen(search, few, identities, metrics, breadth)
    if search.last_iterate:
        # Where a metric was asked for, its last step counts alone; without a step the identity is the last one.
        plans = [plan for plan in plans if plan.setting.metric == space.metric] or plans
    return plans


def after_trends(
    search: Search, space: Space, rows: Rows, plans: list[Plan], random: np.random.RandomState
) -> tuple[list[Fit], Rows, list[Plan]]:
    """Take trends from the targets as long as leaves are predicted better without them, and search the rest anew.

    Returns
    -------
    trend : list of Fit
    rows : Rows
        Drawn anew, with targets that are what the trends leave.
    plans : list of Plan
        Tried on these.
    """
    trend: list[Fit] = []
    while len(trend) < MOST_TRENDS and not search.deadline.is_over(0.2):
        best = race(search, rows.judged, finalists(plans))[0].plan
        starts = starts_of(search, best, plans if space.metric == "auto" else [], rows.some)
        found = trend_of(search, best, starts, rows.table, rows.fresh(), random)
        if found is None:
            break
        trend.append(on_landmarks_alone(found.fit))
        rows = Rows.drawn(rows.table.without(found.values), random)
        plans = screened(search, space, rows.few, OF_MANY_ROWS)
    return trend, rows, plans


def fit_in_one_piece(search: Search, space: Space, rows: Rows, plans: Sequence[Plan]) -> tuple[list[Fit], list[Trial]]:
    """Judge settings on rows that had no part in their metrics, and solve those that count on all rows."""
    trials = race(search, rows.judged, plans)
    everything = np.arange(len(rows.table))

    def on_all_rows(chosen: tuple[Trial, float]) -> Fit:
        trial, share = chosen
        iterate = exact_iterate(search, trial.plan, rows.some)
        found = solved(iterate, trial.plan, rows.table, None, variances=search.fitter.needs_variances)
        left_out, judged = trial.left_out, rows.place[trial.rows]
        if found.left_out_variances is not None:
            # The errors are those of the race, whose metric had not seen the rows; the variances beside them must be
            # those of the machine that is kept, whose metric and noise come from more rows.
            left_out = left_out._replace(unit_variance=found.left_out_variances[judged])
        judgments = [each._replace(rows=rows.place[each.rows]) for each in trial.judgments]
        return Fit(found.machine.changed(share=share), everything, left_out, found.evidence, judged, judgments)

    return in_parallel(on_all_rows, averaged(search, space, trials), search.n_jobs), trials


def fit_on_landmarks(
    search: Search, space: Space, rows: Rows, plans: Sequence[Plan], landmarks: Landmarks
) -> tuple[list[Fit], list[Trial]]:
    """Judge settings as machines in one piece are, and fit those that count on landmarks."""
    trials, fits = race(search, rows.judged, plans), []
    ridge = None if search.freedom.ridge else search.ridge
    for trial, share in averaged(search, space, trials):
        iterate = exact_iterate(search, trial.plan, rows.some)
        found = landmark_machine(iterate, trial.plan.setting.warp, rows.table, landmarks, search.fitter, ridge)
        fits.append(on_landmarks_alone(found, share))
    return fits, trials


def on_landmarks_alone(found: LandmarkFit, share: float = 1.0) -> Fit:
    """Return a machine on landmarks with its share of the average."""
    machine = found.machine.changed(share=share)
    return Fit(machine, found.row_index, found.left_out, found.evidence, found.judged, [])


class Tried(NamedTuple):
    """A plan with its bandwidth and ridge tuned in a leaf, and whether its length scales come from dense rows."""

    plan: Plan
    iterate: Iterate
    learned_densely: bool

    def cost(self) -> float:
        """How bad it is on the rows of the leaf."""
        return self.iterate.cost


def best_of_every_plan(tried: Sequence[Tried]) -> list[Tried]:
    """Return what is best of every plan, the best first."""
    best: dict[int, Tried] = {}
    for each in sorted(tried, key=Tried.cost):
        best.setdefault(id(each.plan), each)
    return list(best.values())


def fit_many_rows(
    search: Search, space: Space, rows: Rows, plans: Sequence[Plan], is_cut: bool, random: np.random.RandomState
) -> tuple[list[Fit], list[Trial]]:
    """Cut all rows into leaves; try settings in one, judge the better ones in few, the best in several; solve these.

    Which setting is right changes with the number of rows. Left-out predictions inside a leaf are made from rows as
    dense as those of the final machine, and rank settings in the order of their errors on new rows. Unless `is_cut`,
    the final machine holds all rows in one piece. Where a trend has left nothing that machines could predict, there
    are none.
    """
    table, fresh, first_plan = rows.table, rows.fresh(), plans[0]
    leaf_rows = LEAF_ROWS if is_cut else JUDGED_LEAF_ROWS
    leaves = cut_into_leaves(first_plan.iterates[-1], first_plan, table, random, most_rows=leaf_rows)
    sampled = [int(leaf) for leaf in random.permutation(leaves.partition.n_leaves)[:JUDGED_LEAVES]]
    tried: list[Tried] = []
    for plan in plans:
        if tried and search.deadline.is_over(0.3):
            break
        tuned = tuned_in_leaves(search, plan, plan.iterates[-1], table, leaves, sampled, QUICK)
        tried.append(Tried(plan, tuned, learned_densely=False))
    for plan, last, _ in sorted(tried, key=Tried.cost)[:REFINED]:
        if plan.setting.metric == "ard" and not search.deadline.is_over(0.35):
            dense = on_dense_rows(search, plan, last, rows.some, FEW_DENSE_ROWS, random)
            tuned = tuned_in_leaves(search, plan, dense, table, leaves, sampled, QUICK)
            tried.append(Tried(plan, tuned, learned_densely=True))
    few, judged = sampled[:FEW_LEAVES], list[tuple[Tried, Trial]]()
    for each in best_of_every_plan(tried)[:JUDGED_IN_FEW]:
        judged.append((each, judged_in_leaves(search, each.plan, each.iterate, table, leaves, few, fresh)))
    judged.sort(key=lambda pair: -pair[1].score)
    if table.has_trend and not beats_its_trend(search.fitter, judged[0][1].left_out):
        return [], [trial for _, trial in judged]
    final: list[tuple[Iterate, Trial]] = []
    for (plan, last, learned_densely), _ in judged[:LEAF_FINALISTS]:
        if final and search.deadline.is_over(0.5):
            break
        if learned_densely:
            last = on_dense_rows(search, plan, last, rows.some, DENSE_ROWS, random)
        else:
            last = on_more_rows(search, plan, rows.some, evidence_rows_of_many(len(table)))
        last = tuned_in_leaves(search, plan, last, table, leaves, sampled, THOROUGH)
        final.append((last, judged_in_leaves(search, plan, last, table, leaves, sampled, fresh)))
    fits, trials = [], [trial for _, trial in final]
    for trial, share in averaged(search, space, trials):
        iterate = next(iterate for iterate, other in final if other is trial)
        if is_cut:
            fits += in_leaves(iterate, trial, share, table, random)
        else:
            fits.append(in_one_piece(search, iterate, trial, share, table, fresh))
    return fits, trials


def in_leaves(iterate: Iterate, trial: Trial, share: float, table: Table, random: np.random.RandomState) -> list[Fit]:
    """Return the machines of all rows in leaves, one for each of several partitions."""
    fits, everything = [], np.arange(len(table))
    for direction in range(PARTITIONS):
        own = cut_into_leaves(iterate, trial.plan, table, random, direction)
        found = solved(iterate, trial.plan, table, own, variances=False)
        machine = found.machine.changed(share=share / PARTITIONS)
        fits.append(Fit(machine, everything, trial.left_out, found.evidence, trial.rows, trial.judgments))
    return fits


def in_one_piece(search: Search, iterate: Iterate, trial: Trial, share: float, table: Table, fresh: np.ndarray) -> Fit:
    """Return the machine of all rows; its own left-out predictions of fresh rows where it gives their variances."""
    found = solved(iterate, trial.plan, table, None, variances=search.fitter.needs_variances)
    machine, everything = found.machine.changed(share=share), np.arange(len(table))
    if found.left_out_variances is None:
        return Fit(machine, everything, trial.left_out, found.evidence, trial.rows, trial.judgments)
    # Leaving a row out turns its coefficient into its error: e_i = alpha_i / (A^-1)_ii.
    variances, alpha = torch.from_numpy(found.left_out_variances), torch.from_numpy(machine.alpha)
    solution = RidgeSolution(iterate.ridge, alpha, alpha * variances[:, None], variances)
    judged = np.flatnonzero(fresh)
    left_out = LeftOut.from_solution(solution, table).rows(judged)
    return Fit(machine, everything, left_out, found.evidence, judged, trial.judgments)


def averaged(search: Search, space: Space, trials: list[Trial]) -> list[tuple[Trial, float]]:
    """Return the trials that count and their shares in the average."""
    if not space.average or len(trials) == 1:
        return [(simplest_of_the_best(trials), 1.0)]
    shares = search.fitter.shares([trial.left_out for trial in trials])
    return [(trial, float(share)) for trial, share in zip(trials, shares, strict=True) if share > 0]
