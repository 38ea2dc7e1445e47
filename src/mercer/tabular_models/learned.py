"""What a search begins with and what it ends with: its space, the rows it draws, and machines that are averaged."""

from typing import Any, NamedTuple

import numpy as np

from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.finish import METRIC_ROWS
from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.plans import Search
from mercer.tabular_models.race import JUDGE_ROWS, Judgment, Trial, simplest_of_the_best
from mercer.tabular_models.screen import SCREEN_ROWS
from mercer.tabular_models.table import Table

# Beyond this many rows settings are judged in leaves. Half of the rows have no part in any metric then, of the other
# half no more than so many.
MANY_ROWS, MOST_DENSE_ROWS = 2000, 100_000


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


def averaged(search: Search, space: Space, trials: list[Trial]) -> list[tuple[Trial, float]]:
    """Return the trials that count and their shares in the average."""
    if not space.average or len(trials) == 1:
        return [(simplest_of_the_best(trials), 1.0)]
    shares = search.fitter.shares([trial.left_out for trial in trials])
    return [(trial, float(share)) for trial, share in zip(trials, shares, strict=True) if share > 0]
