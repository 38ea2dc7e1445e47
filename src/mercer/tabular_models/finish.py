"""Machines on all rows of a table: metrics learned on more rows, coefficients solved in one piece or in leaves."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.linalg import CholeskyFactor, cholesky, ridge_leave_one_out, threads_for
from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.metric_learning import relearned, with_length_scales
from mercer.tabular_models.partition import Partition, median_cuts
from mercer.tabular_models.race import SCREEN_ROWS, Judgment, Plan, Search, Trial
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate, tuned

# Metrics are learned on at most this many rows, those of evidence on fewer, and bandwidth and ridge tuned on as many.
METRIC_ROWS, EVIDENCE_ROWS, TUNE_ROWS = 2000, 700, 800
# Of many rows, one in so many is worth the time of the evidence, between these bounds.
ROWS_A_ROW_OF_EVIDENCE, FEWEST_OF_MANY, MOST_OF_MANY = 15, 1000, 1600
# Up to this many rows one machine holds them all; beyond, each leaf of at most so many rows has its own.
MOST_EXACT_ROWS, LEAF_ROWS = 4000, 1500
# Settings that are judged in one leaf, how many of these are finalists, and leaves in which finalists are judged.
JUDGED_IN_LEAVES, LEAF_FINALISTS, JUDGED_LEAVES = 8, 3, 4
# Partitions that a machine is solved in: their average has smaller jumps at borders.
PARTITIONS = 2


def evidence_rows_of_many(n: int) -> int:
    """Return on how many of n rows the evidence of a metric is followed: more rows are worth more time."""
    return min(max(n // ROWS_A_ROW_OF_EVIDENCE, FEWEST_OF_MANY), MOST_OF_MANY)


def on_more_rows(search: Search, plan: Plan, table: Table, evidence_rows: int = EVIDENCE_ROWS) -> Iterate:
    """Return the last step of a plan with its metric learned on more rows than the screen had, not yet tuned on them.

    Parameters
    ----------
    search : Search
    plan : Plan
    table : Table
        Rows in random order, the first of them those of the screen.
    evidence_rows : int
        Of these, the rows on which the evidence is followed.
    """
    if len(table) <= SCREEN_ROWS or plan.setting.metric == "identity":
        return plan.iterates[-1]
    rows = table.take(np.arange(min(len(table), METRIC_ROWS)))
    Z, floor = rows.warped(plan.setting.warp), search.fitter.smallest_ridge
    out_of_time = search.deadline.is_over
    if plan.setting.metric == "ard":
        return with_length_scales(
            plan.iterates[-1],
            rows,
            Z,
            noise_floor=floor,
            freedom=search.freedom,
            rows=evidence_rows,
            out_of_time=out_of_time,
        )
    return relearned(plan.iterates, plan.setting.metric, rows, Z, floor, search.freedom, out_of_time)[-1]


def exact_iterate(search: Search, plan: Plan, table: Table) -> Iterate:
    """Return the kernel and the ridge of a plan for one machine of all rows."""
    with threads_for(min(len(table), METRIC_ROWS)):
        last = on_more_rows(search, plan, table)
        rows = table.take(np.arange(min(len(table), TUNE_ROWS)))
        part = (rows, rows.warped(plan.setting.warp))
        return tuned(last.kernel, last.ridge, [part], search.fitter, search.freedom, fine=True)


class Leaves(NamedTuple):
    """A partition of the rows of a table, and which rows are in which leaf."""

    partition: Partition
    of_row: np.ndarray

    def rows_of(self, leaf: int) -> np.ndarray:
        """Return the rows of a leaf."""
        return np.flatnonzero(self.of_row == leaf)

    def pieces(self) -> list[np.ndarray]:
        """Return the rows of every leaf."""
        return [self.rows_of(leaf) for leaf in range(self.partition.n_leaves)]


def cut_into_leaves(
    iterate: Iterate, plan: Plan, table: Table, random: np.random.RandomState, first: int = 0
) -> Leaves:
    """Cut all rows along the leading directions of a learned metric, `first` saying which of them comes first."""
    columns, Z = table.columns(plan.setting.warp), table.warped(plan.setting.warp)
    return Leaves(*median_cuts(iterate.kernel, columns, Z, LEAF_ROWS, random, first))


def judged_in_leaves(
    search: Search,
    plan: Plan,
    last: Iterate,
    table: Table,
    leaves: Leaves,
    sampled: Sequence[int],
    fresh: np.ndarray,
    *,
    fine: bool,
) -> tuple[Iterate, Trial]:
    """Tune a machine in some leaves, and judge it by its leave-one-out predictions there.

    Parameters
    ----------
    search, plan, last
        The kernel of `last` has the plan's metric, learned on rows that are not `fresh`.
    table : Table
        All rows.
    leaves : Leaves
    sampled : sequence of int
        The leaves to use.
    fresh : ndarray of bool, of shape (n,)
        Rows that had no part in any metric; only these are judged.
    fine : bool
        Whether bandwidth and ridge are tuned to the end.
    """
    warp, parts = plan.setting.warp, []
    for leaf in sampled:
        rows = table.take(leaves.rows_of(leaf))
        parts.append((rows, rows.warped(warp)))
    with threads_for(LEAF_ROWS):
        last = tuned(last.kernel, last.ridge, parts[:1], search.fitter, search.freedom, fine=fine)
        found, judgments = [], []
        for leaf, (rows, Z) in zip(sampled, parts, strict=True):
            solution = ridge_leave_one_out(last.kernel.matrix(Z), rows.y, last.ridge, rows.weights)
            own = leaves.rows_of(leaf)
            judgments.append(Judgment(last, own, np.flatnonzero(fresh[own])))
            found.append(LeftOut.from_solution(solution, rows).rows(judgments[-1].judged))
    left_out = LeftOut.joined(found)
    judged = np.concatenate([each.rows[each.judged] for each in judgments])
    return last, Trial(plan, left_out, search.fitter.row_scores(left_out), judged, judgments)


class Solved(NamedTuple):
    """A machine on all rows, with what the same factorizations give.

    Attributes
    ----------
    machine : Machine
        With the output scale of the largest evidence.
    left_out_variances : ndarray of shape (n,) or None
        Of the target of each row had it been left out, for an output scale of 1; None where nobody asked.
    evidence : EvidenceTerms
    """

    machine: Machine
    left_out_variances: np.ndarray | None
    evidence: EvidenceTerms


def solved(iterate: Iterate, plan: Plan, table: Table, leaves: Leaves | None, *, variances: bool) -> Solved:
    """Solve a kernel and a ridge on all rows, in one piece or leaf by leaf; `variances` asks for those left out."""
    warp, alpha = plan.setting.warp, torch.empty_like(table.y)
    partition, of_row = (None, None) if leaves is None else leaves
    pieces = [np.arange(len(table))] if leaves is None else leaves.pieces()
    spread = np.empty(len(table)) if variances else None
    terms: list[EvidenceTerms] = []
    with threads_for(max(map(len, pieces))):
        for rows in pieces:
            part = table if leaves is None else table.take(rows)
            A = iterate.kernel.matrix(part.warped(warp))
            A.diagonal().add_(iterate.ridge if part.weights is None else iterate.ridge / part.weights)
            factor = cholesky(A, warn=False)
            solution = factor.solve(part.y)
            alpha[torch.from_numpy(rows)] = solution
            terms.append(evidence_terms(factor, solution, part, iterate.ridge))
            if spread is not None:
                spread[rows] = (1.0 / factor.inverse_diagonal()).cpu().numpy()
    evidence = EvidenceTerms.joined(terms)
    machine = Machine(
        iterate.kernel,
        table.columns(warp),
        table.X,
        alpha.cpu().numpy(),
        iterate.ridge,
        1.0,
        evidence.best_scales(),
        None if table.weights is None else table.weights.cpu().numpy(),
        partition,
        of_row,
    )
    return Solved(machine, spread, evidence)


def evidence_terms(factor: CholeskyFactor, alpha: Tensor, table: Table, ridge: float) -> EvidenceTerms:
    """Return the terms of the evidence of a solved machine; repeats count as in `negative_log_evidence`."""
    further, scatter = (0, 0.0) if table.repeats is None else table.repeats
    q = (table.y * alpha).sum(dim=0) + scatter / ridge
    determinant = float(factor.log_determinant()) + further * math.log(ridge)
    return EvidenceTerms(len(table) + further, q.cpu().numpy(), determinant)
