"""The search of RFMs and Gaussian processes: screen settings on few rows, race the best, and fit them on all rows."""

from collections.abc import Sequence

import numpy as np

from mercer.linalg import in_parallel
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.deadline import TRENDS_UNTIL
from mercer.tabular_models.finish import exact_iterate, solved
from mercer.tabular_models.landmark_table import LandmarkFit, Landmarks, landmark_machine
from mercer.tabular_models.learned import MANY_ROWS, Fit, Learned, Rows, Space, averaged
from mercer.tabular_models.many_rows import fit_many_rows
from mercer.tabular_models.plans import Plan, Search, finalists, history_entry
from mercer.tabular_models.race import Trial, race
from mercer.tabular_models.screen import OF_MANY_ROWS, USUAL, Breadth, screen
from mercer.tabular_models.settings import Setting, metrics_of, warps_of
from mercer.tabular_models.table import Table
from mercer.tabular_models.trend import FEWEST_TREND_ROWS, MOST_TRENDS, starts_of, trend_of

# Up to this many rows there is one machine for all of them; beyond, each leaf of a partition has its own machine.
MOST_EXACT_ROWS = 4000


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
        If given, all machines are functions of landmarks.
    exact : bool
        Whether machines of many rows are solved in one piece and not in leaves.
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
        fits, trials = fit_many_rows(search, space, rows, plans, is_cut, random)
        if not fits:
            fits = [trend.pop()]
    else:
        fits, trials = fit_in_one_piece(search, space, rows, finalists(plans))
    history = [history_entry(plan, len(rows.few)) for plan in tried]
    history += [history_entry(trial.plan, len(trial.rows), trial.score) for trial in trials]
    fits = sorted(fits, key=lambda fit: -fit.machine.share)
    return Learned(fits, history, not search.deadline.was_asked_in_vain, trend)


def screened(search: Search, space: Space, few: Table, breadth: Breadth) -> list[Plan]:
    """Try all settings of a space on a few rows; return the plans in increasing order of their cost."""
    identities = [Setting(kernel, warp) for warp in warps_of(space.warp, few, WARPS) for kernel in space.kernels]
    metrics = [metrics_of(space.metric, setting.kernel, few) for setting in identities]
    plans = screen(search, few, identities, metrics, breadth)
    if search.last_iterate:
        # Only the last step of the requested metric is kept; if no step was made, the identity is the last one.
        plans = [plan for plan in plans if plan.setting.metric == space.metric] or plans
    return plans


def after_trends(
    search: Search, space: Space, rows: Rows, plans: list[Plan], random: np.random.RandomState
) -> tuple[list[Fit], Rows, list[Plan]]:
    """Subtract trends from the targets while this improves predictions in leaves, and search again on the residuals.

    Returns
    -------
    trend : list of Fit
    rows : Rows
        Rows that are drawn again, whose targets are the residuals of the trends.
    plans : list of Plan
        The plans that were tried on these rows.
    """
    trend: list[Fit] = []
    while len(trend) < MOST_TRENDS and not search.deadline.is_over(TRENDS_UNTIL):
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
    """Judge settings on rows that their metrics were not learned from, and solve the chosen ones on all rows."""
    trials = race(search, rows.judged, plans)
    everything = np.arange(len(rows.table))

    def on_all_rows(chosen: tuple[Trial, float]) -> Fit:
        trial, share = chosen
        iterate = exact_iterate(search, trial.plan, rows.some)
        found = solved(iterate, trial.plan, rows.table, None, variances=search.fitter.needs_variances)
        left_out, judged = trial.left_out, rows.place[trial.rows]
        if found.left_out_variances is not None:
            # The errors are those of the race, whose metrics were not learned from these rows. The variances must be
            # those of the machine that is kept, whose metric and noise are learned from more rows.
            left_out = left_out._replace(unit_variance=found.left_out_variances[judged])
        judgments = [each._replace(rows=rows.place[each.rows]) for each in trial.judgments]
        return Fit(found.machine.changed(share=share), everything, left_out, found.evidence, judged, judgments)

    return in_parallel(on_all_rows, averaged(search, space, trials), search.n_jobs), trials


def fit_on_landmarks(
    search: Search, space: Space, rows: Rows, plans: Sequence[Plan], landmarks: Landmarks
) -> tuple[list[Fit], list[Trial]]:
    """Judge settings as for machines in one piece, and fit the chosen ones on landmarks."""
    trials, fits = race(search, rows.judged, plans), []
    ridge = None if search.freedom.ridge else search.ridge
    for trial, share in averaged(search, space, trials):
        iterate = exact_iterate(search, trial.plan, rows.some)
        found = landmark_machine(iterate, trial.plan.setting.warp, rows.table, landmarks, search.fitter, ridge)
        fits.append(on_landmarks_alone(found, share))
    return fits, trials


def on_landmarks_alone(found: LandmarkFit, share: float = 1.0) -> Fit:
    """Return a machine on landmarks as a `Fit`, with its share of the average."""
    machine = found.machine.changed(share=share)
    return Fit(machine, found.row_index, found.left_out, found.evidence, found.judged, [])
