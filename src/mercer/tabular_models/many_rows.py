"""The search on tables of many rows: settings are judged in leaves, groups of neighboring rows.

The best setting depends on how dense the rows are. A few hundred rows drawn from a large table lie far apart. They
cannot distinguish a rough function from noise, nor show short length scales. A leaf is as dense as the whole table, and
costs no more than the same number of rows drawn from all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from mercer.linalg import RidgeSolution
from mercer.tabular_models.deadline import FINALISTS_UNTIL, METRICS_UNTIL, TUNED_IN_LEAVES_UNTIL
from mercer.tabular_models.finish import evidence_rows_of_many, on_dense_rows, on_more_rows, solved
from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.learned import Fit, Rows, Space, averaged
from mercer.tabular_models.leaves import LEAF_ROWS, QUICK, THOROUGH, JudgedLeaves, cut_into_leaves
from mercer.tabular_models.plans import Plan, Search, contenders
from mercer.tabular_models.race import Trial
from mercer.tabular_models.table import Table
from mercer.tabular_models.trend import beats_its_trend
from mercer.tabular_models.tuning import Iterate

# The largest number of rows of a leaf in which settings are judged, if the machine is then solved in one piece.
JUDGED_LEAF_ROWS = 800
# Number of settings that are tried on half of the rows of a leaf; that also learn length scales from dense rows; that
# are judged in FEW_LEAVES leaves; and FINALISTS, which are tuned to the end and judged in more leaves.
TRIED, REFINED, JUDGED, FEW_LEAVES, FINALISTS = 14, 8, 6, 2, 3
# Number of rows of a leaf on which length scales climb the evidence: for settings that are tried, and for finalists.
FEW_DENSE_ROWS, DENSE_ROWS = 400, 800
# Number of partitions in which a machine is solved: their average has smaller jumps at the borders of leaves.
PARTITIONS = 2


class Tried(NamedTuple):
    """A plan with bandwidth and ridge tuned in a leaf, and whether its length scales were learned from dense rows."""

    plan: Plan
    iterate: Iterate
    is_dense: bool


def fit_many_rows(
    search: Search, space: Space, rows: Rows, plans: Sequence[Plan], is_cut: bool, random: np.random.RandomState
) -> tuple[list[Fit], list[Trial]]:
    """Judge settings in leaves, with fewer settings and more leaves in each round, and solve the best on all rows.

    Parameters
    ----------
    search : Search
    space : Space
    rows : Rows
    plans : sequence of Plan
        The plans of the screen, the best first.
    is_cut : bool
        Whether the machines on all rows are also solved in leaves, or in one piece.
    random : RandomState

    Returns
    -------
    fits : list of Fit
        Empty if a trend has left nothing that machines could predict.
    trials : list of Trial
        The trials of the finalists.
    """
    table, first = rows.table, plans[0]
    leaf_rows = LEAF_ROWS if is_cut else JUDGED_LEAF_ROWS
    leaves = JudgedLeaves.drawn(first.iterates[-1], first, table, rows.fresh(), random, leaf_rows)
    tried = tried_in_a_leaf(search, leaves, contenders(plans, TRIED), rows.some, random)
    judged = [(each, leaves.judged(search, each.plan, each.iterate, FEW_LEAVES)) for each in tried[:JUDGED]]
    judged.sort(key=lambda pair: -pair[1].score)
    if table.has_trend and not beats_its_trend(search.fitter, judged[0][1].left_out):
        return [], [trial for _, trial in judged]
    final: list[tuple[Iterate, Trial]] = []
    for (plan, last, is_dense), _ in judged[:FINALISTS]:
        if final and search.deadline.is_over(FINALISTS_UNTIL):
            break
        if is_dense:
            last = on_dense_rows(search, plan, last, rows.some, DENSE_ROWS, random)
        else:
            last = on_more_rows(search, plan, rows.some, evidence_rows_of_many(len(table)))
        last = leaves.tuned(search, plan, last, THOROUGH)
        final.append((last, leaves.judged(search, plan, last)))
    fits, trials = [], [trial for _, trial in final]
    for trial, share in averaged(search, space, trials):
        iterate = next(iterate for iterate, other in final if other is trial)
        if is_cut:
            fits += in_leaves(search, iterate, trial, share, table, random)
        else:
            fits.append(in_one_piece(search, iterate, trial, share, table, leaves.fresh))
    return fits, trials


def tried_in_a_leaf(
    search: Search, leaves: JudgedLeaves, plans: Sequence[Plan], some: Table, random: np.random.RandomState
) -> list[Tried]:
    """Return the plans in the order of their cost in a leaf, the best with the better of two sets of length scales.

    One set is learned from few rows of the whole table, which suits smooth functions. The other is learned from the
    dense rows of a leaf of `some`, which suits rough functions.
    """
    tried: list[Tried] = []
    for plan in plans:
        if tried and search.deadline.is_over(TUNED_IN_LEAVES_UNTIL):
            break
        tried.append(Tried(plan, leaves.tuned(search, plan, plan.iterates[-1], QUICK), is_dense=False))
    tried.sort(key=lambda each: each.iterate.cost)
    for place, (plan, last, _) in enumerate(tried[:REFINED]):
        if plan.setting.metric != "ard" or search.deadline.is_over(METRICS_UNTIL):
            continue
        dense = on_dense_rows(search, plan, last, some, FEW_DENSE_ROWS, random)
        dense = leaves.tuned(search, plan, dense, QUICK)
        if dense.cost < last.cost:
            tried[place] = Tried(plan, dense, is_dense=True)
    return sorted(tried, key=lambda each: each.iterate.cost)


def in_leaves(
    search: Search, iterate: Iterate, trial: Trial, share: float, table: Table, random: np.random.RandomState
) -> list[Fit]:
    """Return the machines on all rows in leaves: one for each of several partitions, or only one if the time is up."""
    fits, everything = [], np.arange(len(table))
    partitions = 1 if search.deadline.is_over() else PARTITIONS
    for direction in range(partitions):
        own = cut_into_leaves(iterate, trial.plan, table, random, LEAF_ROWS, direction)
        found = solved(iterate, trial.plan, table, own, variances=False, workers=search.workers)
        machine = found.machine.changed(share=share / partitions)
        fits.append(Fit(machine, everything, trial.left_out, found.evidence, trial.rows, trial.judgments))
    return fits


def in_one_piece(search: Search, iterate: Iterate, trial: Trial, share: float, table: Table, fresh: np.ndarray) -> Fit:
    """Return the machine on all rows; if it gives variances, with its own left-out predictions of the fresh rows."""
    found = solved(iterate, trial.plan, table, None, variances=search.fitter.needs_variances)
    machine, everything = found.machine.changed(share=share), np.arange(len(table))
    if found.left_out_variances is None:
        return Fit(machine, everything, trial.left_out, found.evidence, trial.rows, trial.judgments)
    # The leave-one-out error of a row follows from its coefficient: e_i = alpha_i / (A^-1)_ii.
    variances, alpha = torch.from_numpy(found.left_out_variances), torch.from_numpy(machine.alpha)
    solution = RidgeSolution(iterate.ridge, alpha, alpha * variances[:, None], variances)
    judged = np.flatnonzero(fresh)
    left_out = LeftOut.from_solution(solution, table).rows(judged)
    return Fit(machine, everything, left_out, found.evidence, judged, trial.judgments)
