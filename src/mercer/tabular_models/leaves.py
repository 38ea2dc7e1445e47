"""Leaves of a table, groups of neighboring rows, in which settings are tuned and judged at the table's density."""

from typing import NamedTuple

import numpy as np

from mercer.linalg import ridge_leave_one_out, threads_for
from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.partition import Partition, median_cuts
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.race import Judgment, Trial
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate, tuned

# The largest number of rows of a leaf with its own machine, and the number of leaves in which finalists are judged.
LEAF_ROWS, JUDGED_LEAVES = 1500, 4


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


class Effort(NamedTuple):
    """How much work to spend on bandwidth and ridge: the number of leaves, the rows of each, and whether to refine."""

    leaves: int
    rows: int
    fine: bool


# All settings are tuned on half of the rows of a leaf, which distinguishes them at an eighth of the work. Finalists are
# tuned in two leaves, since the noise of one leaf may differ much from that of the others.
QUICK, THOROUGH = Effort(1, LEAF_ROWS // 2, fine=False), Effort(2, 2 * LEAF_ROWS // 3, fine=True)


def cut_into_leaves(
    iterate: Iterate,
    plan: Plan,
    table: Table,
    random: np.random.RandomState,
    most_rows: int,
    first: int = 0,
) -> Leaves:
    """Cut all rows along the leading directions of a learned metric; `first` is the index of the first direction."""
    columns, Z = table.columns(plan.setting.warp), table.warped(plan.setting.warp)
    return Leaves(*median_cuts(iterate.kernel, columns, Z, most_rows, random, first))


class JudgedLeaves(NamedTuple):
    """Some leaves of a table, in which settings are tuned, and judged by leave-one-out errors.

    Attributes
    ----------
    table : Table
        All rows.
    leaves : Leaves
    sampled : list of int
        The leaves to use, in random order.
    fresh : ndarray of bool, of shape (n,)
        The rows that no metric was learned from; only these are judged.
    """

    table: Table
    leaves: Leaves
    sampled: list[int]
    fresh: np.ndarray

    @classmethod
    def drawn(
        cls,
        iterate: Iterate,
        plan: Plan,
        table: Table,
        fresh: np.ndarray,
        random: np.random.RandomState,
        most_rows: int,
    ) -> "JudgedLeaves":
        """Cut all rows along the directions of a learned metric, and choose the leaves to use at random."""
        leaves = cut_into_leaves(iterate, plan, table, random, most_rows)
        sampled = random.permutation(leaves.partition.n_leaves)[:JUDGED_LEAVES]
        return cls(table, leaves, [int(leaf) for leaf in sampled], fresh)

    def tuned(self, search: Search, plan: Plan, last: Iterate, effort: Effort) -> Iterate:
        """Return the kernel of `last` with bandwidth and ridge tuned in the first leaves, with the given effort."""
        parts = []
        for leaf in self.sampled[: effort.leaves]:
            rows = self.table.take(thinned(self.leaves.rows_of(leaf), effort.rows))
            parts.append((rows, rows.warped(plan.setting.warp)))
        with threads_for(effort.rows):
            return tuned(last.kernel, last.ridge, parts, search.fitter, search.freedom, fine=effort.fine)

    def judged(self, search: Search, plan: Plan, last: Iterate, most: int = JUDGED_LEAVES) -> Trial:
        """Judge a machine by its leave-one-out predictions of fresh rows in the first `most` leaves.

        The kernel of `last` has the plan's metric, learned on rows that are not fresh. The score is the squared error:
        with densities, a few outliers would favor machines that predict worse (California housing 45.0k, not 40.2k).
        """
        found, judgments = [], []
        with threads_for(LEAF_ROWS):
            for leaf in self.sampled[:most]:
                own = self.leaves.rows_of(leaf)
                rows = self.table.take(own)
                K = last.kernel.matrix(rows.warped(plan.setting.warp))
                solution = ridge_leave_one_out(K, rows.y, last.ridge, rows.weights)
                judgments.append(Judgment(last, own, np.flatnonzero(self.fresh[own])))
                found.append(LeftOut.from_solution(solution, rows).rows(judgments[-1].judged))
        left_out = LeftOut.joined(found)
        judged = np.concatenate([each.rows[each.judged] for each in judgments])
        return Trial(plan, left_out, search.fitter.error_scores(left_out), judged, judgments)


def thinned(rows: np.ndarray, most: int) -> np.ndarray:
    """Return all rows, or `most` of them that are evenly spaced in the order of the table."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
