"""From a table to machines on all its rows: screen, race, average, fit. What RFMs and Gaussian processes share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.linalg import in_parallel
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.finish import (
    JUDGED_IN_LEAVES,
    JUDGED_LEAVES,
    LEAF_FINALISTS,
    METRIC_ROWS,
    MOST_EXACT_ROWS,
    PARTITIONS,
    cut_into_leaves,
    evidence_rows_of_many,
    exact_iterate,
    judged_in_leaves,
    on_more_rows,
    solved,
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
    finalists,
    history_entry,
    race,
    screen,
    simplest_of_the_best,
)
from mercer.tabular_models.settings import VERY_MANY_ROWS, Setting, metrics_of, warps_of
from mercer.tabular_models.table import Table
from mercer.tabular_models.trend import MOST_TRENDS, beats_its_trend, starts_of, trend_of
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
        """Draw the rows that are not all of a table."""
        # Distinct rows come in an order of their own; in random order the first few are a sample of all.
        place = random.permutation(len(table))[: max(JUDGE_ROWS, METRIC_ROWS)]
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
    in_leaves, trend = landmarks is None and not exact and len(table) > MOST_EXACT_ROWS, list[Fit]()
    rows = Rows.drawn(table, random)
    plans = tried = screened(search, space, rows.few, OF_MANY_ROWS if in_leaves else USUAL)
    if landmarks is not None:
        fits, trials = fit_on_landmarks(search, space, rows, finalists(plans), landmarks)
    elif in_leaves:
        if space.trends and len(table) > VERY_MANY_ROWS:
            trend, rows, plans = after_trends(search, space, rows, plans, random)
        fits, trials = fit_in_leaves(search, space, rows, finalists(plans, JUDGED_IN_LEAVES), random)
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


def fit_in_leaves(
    search: Search, space: Space, rows: Rows, plans: Sequence[Plan], random: np.random.RandomState
) -> tuple[list[Fit], list[Trial]]:
    """Cut all rows into leaves; judge settings in one leaf, the best of them in several, and solve these in all.

    Which setting is right changes with the number of rows. Left-out predictions inside a leaf are made from rows as
    dense as those of the final machine, and rank settings in the order of their errors on new rows. Where a trend has
    left nothing that machines in leaves could predict, there are none.
    """
    table, everything = rows.table, np.arange(len(rows.table))
    fresh = rows.fresh()
    leaves = cut_into_leaves(plans[0].iterates[-1], plans[0], table, random)
    sampled = [int(leaf) for leaf in random.permutation(leaves.partition.n_leaves)[:JUDGED_LEAVES]]
    first: list[Trial] = []
    for plan in plans:
        if first and search.deadline.is_over(0.35):
            break
        first.append(
            judged_in_leaves(search, plan, plan.iterates[-1], table, leaves, sampled[:1], fresh, fine=False)[1]
        )
    best = max(first, key=lambda trial: trial.score)
    if table.has_trend and not beats_its_trend(search.fitter, best.left_out):
        return [], first
    tuned: list[tuple[Iterate, Trial]] = []
    for trial in sorted(first, key=lambda trial: -trial.score)[:LEAF_FINALISTS]:
        if tuned and search.deadline.is_over(0.5):
            break
        last = on_more_rows(search, trial.plan, rows.some, evidence_rows_of_many(len(table)))
        tuned.append(judged_in_leaves(search, trial.plan, last, table, leaves, sampled, fresh, fine=True))
    fits, trials = [], [trial for _, trial in tuned]
    for trial, share in averaged(search, space, trials):
        iterate = next(iterate for iterate, other in tuned if other is trial)
        partitions = 1 if search.deadline.is_over() else PARTITIONS
        for direction in range(partitions):
            own = cut_into_leaves(iterate, trial.plan, table, random, direction)
            found = solved(iterate, trial.plan, table, own, variances=False)
            machine = found.machine.changed(share=share / partitions)
            fits.append(Fit(machine, everything, trial.left_out, found.evidence, trial.rows, trial.judgments))
    return fits, trials


def averaged(search: Search, space: Space, trials: list[Trial]) -> list[tuple[Trial, float]]:
    """Return the trials that count and their shares in the average."""
    if not space.average or len(trials) == 1:
        return [(simplest_of_the_best(trials), 1.0)]
    shares = search.fitter.shares([trial.left_out for trial in trials])
    return [(trial, float(share)) for trial, share in zip(trials, shares, strict=True) if share > 0]
