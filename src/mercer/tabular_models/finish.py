"""Machines on all rows of a table: metrics are learned on more rows, and coefficients solved whole or in leaves."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel
from mercer.linalg import CholeskyFactor, cholesky, threads_for
from mercer.rows import Cluster, of_each_part
from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.leaves import Leaves
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.metric_learning import relearned, with_length_scales
from mercer.tabular_models.partition import random_leaf
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.screen import SCREEN_ROWS
from mercer.tabular_models.table import Repeats, Table
from mercer.tabular_models.tuning import Iterate, tuned

# The largest numbers of rows for metrics, for metrics by evidence, and for the tuning of bandwidth and ridge.
METRIC_ROWS, EVIDENCE_ROWS, TUNE_ROWS = 2000, 700, 800
# If there are many rows, the evidence is evaluated on one row in ROWS_A_ROW_OF_EVIDENCE, between these bounds.
ROWS_A_ROW_OF_EVIDENCE, FEWEST_OF_MANY, MOST_OF_MANY = 15, 1000, 1600
# Number of steps by which length scales of the screen climb the evidence on more rows: they start near its maximum.
MORE_STEPS = 8


def evidence_rows_of_many(n: int) -> int:
    """Return the number of rows on which the evidence of a metric is maximized, which grows with n."""
    return min(max(n // ROWS_A_ROW_OF_EVIDENCE, FEWEST_OF_MANY), MOST_OF_MANY)


def on_more_rows(search: Search, plan: Plan, table: Table, evidence_rows: int = EVIDENCE_ROWS) -> Iterate:
    """Return the last step of a plan with its metric learned on more rows than the screen's, not yet tuned on them.

    Parameters
    ----------
    search : Search
    plan : Plan
    table : Table
        Rows in random order; the first of them are those of the screen.
    evidence_rows : int
        The number of these rows on which the evidence is maximized.
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
            steps=MORE_STEPS,
            out_of_time=out_of_time,
        )
    return relearned(plan.iterates, plan.setting.metric, rows, Z, floor, search.freedom, out_of_time)[-1]


def on_dense_rows(
    search: Search, plan: Plan, last: Iterate, table: Table, rows: int, random: np.random.RandomState
) -> Iterate:
    """Return `last` with length scales that have climbed the evidence on the rows of one leaf.

    Few rows drawn from a whole table lie far apart, and contain no information on short length scales. The rows of a
    leaf are as dense as the table. Length scales on which the leaf has no information stay near their old values.
    """
    warp = plan.setting.warp
    leaf = table.take(random_leaf(last.kernel, table.warped(warp), rows, random))
    floor = search.fitter.smallest_ridge
    with threads_for(rows):
        return with_length_scales(
            last,
            leaf,
            leaf.warped(warp),
            noise_floor=floor,
            freedom=search.freedom,
            rows=len(leaf),
            steps=MORE_STEPS,
            out_of_time=search.deadline.is_over,
        )


def exact_iterate(search: Search, plan: Plan, table: Table) -> Iterate:
    """Return the kernel and the ridge of a plan for one machine on all rows."""
    with threads_for(min(len(table), METRIC_ROWS)):
        last = on_more_rows(search, plan, table)
        rows = table.take(np.arange(min(len(table), TUNE_ROWS)))
        part = (rows, rows.warped(plan.setting.warp))
        return tuned(last.kernel, last.ridge, [part], search.fitter, search.freedom, fine=True)


class Solved(NamedTuple):
    """A machine on all rows, with quantities that the same factorizations give.

    Attributes
    ----------
    machine : Machine
        The machine, with the output scale that maximizes the evidence.
    left_out_variances : ndarray of shape (n,) or None
        The variance of each target if its row is left out, for an output scale of 1; None if not requested.
    evidence : EvidenceTerms
    """

    machine: Machine
    left_out_variances: np.ndarray | None
    evidence: EvidenceTerms


def solved(
    iterate: Iterate,
    plan: Plan,
    table: Table,
    leaves: Leaves | None,
    *,
    variances: bool,
    workers: Cluster | None = None,
) -> Solved:
    """Solve a kernel and a ridge on all rows, in one piece or leaf by leaf.

    Parameters
    ----------
    iterate : Iterate
    plan : Plan
    table : Table
    leaves : Leaves or None
    variances : bool
        Whether to compute the variances of left-out rows.
    workers : Cluster or None, default=None
        If given, each leaf is solved as a task of a worker.
    """
    warp, alpha = plan.setting.warp, torch.empty_like(table.y)
    partition, of_row = (None, None) if leaves is None else leaves
    pieces = [np.arange(len(table))] if leaves is None else leaves.pieces()
    spread = np.empty(len(table)) if variances else None
    terms: list[EvidenceTerms] = []
    parts = (piece_of(table if leaves is None else table.take(rows), warp) for rows in pieces)
    with threads_for(max(map(len, pieces))):
        found = of_each_part(solved_piece, (iterate.kernel, iterate.ridge, variances), parts, workers)
        for rows, (solution, own, variance) in zip(pieces, found, strict=True):
            alpha[torch.from_numpy(rows)] = solution.to(alpha)
            terms.append(own)
            if spread is not None:
                spread[rows] = variance
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


def piece_of(part: Table, warp: Any) -> tuple[Tensor, Tensor, Tensor | None, Repeats | None]:
    """Return the data from which a piece of a table is solved: warped rows, targets, weights and repeats."""
    return part.warped(warp), part.y, part.weights, part.repeats


def solved_piece(
    Z: Tensor,
    y: Tensor,
    weights: Tensor | None,
    repeats: Repeats | None,
    kernel: Kernel,
    ridge: float,
    variances: bool,
) -> tuple[Tensor, EvidenceTerms, np.ndarray | None]:
    """Return the coefficients of the rows of a leaf, the terms of its evidence, and the variances of left-out rows."""
    A = kernel.matrix(Z)
    A.diagonal().add_(ridge if weights is None else ridge / weights)
    factor = cholesky(A, warn=False)
    alpha = factor.solve(y)
    spread = (1.0 / factor.inverse_diagonal()).cpu().numpy() if variances else None
    return alpha, evidence_terms(factor, alpha, y, repeats, ridge), spread


def evidence_terms(
    factor: CholeskyFactor, alpha: Tensor, y: Tensor, repeats: Repeats | None, ridge: float
) -> EvidenceTerms:
    """Return the terms of the evidence of a solved machine; repeats count as in `negative_log_evidence`."""
    further, scatter = (0, 0.0) if repeats is None else repeats
    q = (y * alpha).sum(dim=0) + scatter / ridge
    determinant = float(factor.log_determinant()) + further * math.log(ridge)
    return EvidenceTerms(len(y) + further, q.cpu().numpy(), determinant)
