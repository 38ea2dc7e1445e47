"""The input and the result of a search: the space of settings, the rows that it draws, and the machines to average."""

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

# For tables with more than MANY_ROWS rows, settings are judged in leaves. Metrics are then learned from at most half of
# the rows, and from at most MOST_DENSE_ROWS.
MANY_ROWS, MOST_DENSE_ROWS = 2000, 100_000


class Space(NamedTuple):
    """The settings that a search may choose from.

    Attributes
    ----------
    kernels : list of Kernel
    warp : str or sequence of str
        "auto", or the warp of all columns, or the warps of the columns.
    metric : str
        "auto" or one of `settings.METRICS`.
    average : bool
        Whether the best machines are averaged; otherwise one is chosen.
    trends : bool
        Whether a trend on landmarks may be subtracted from the targets if there are very many rows.
    """

    kernels: list[Any]
    warp: Any
    metric: str
    average: bool
    trends: bool


class Fit(NamedTuple):
    """A machine fitted on all rows, with its left-out predictions and its evidence.

    Attributes
    ----------
    machine : Machine
    row_index : ndarray of shape (m,)
        The rows of the table that have a coefficient in the machine.
    left_out : LeftOut
        Predictions of rows that the metric was not learned from, the same rows for all machines that are averaged.
    evidence : EvidenceTerms
        The terms of the log evidence of the machine; with landmarks, of its lower bound.
    judged : ndarray of shape (n,)
        The rows of the table that `left_out` predicts.
    judgments : list of Judgment
        The machines that made the predictions `left_out`; empty with landmarks.
    """

    machine: Machine
    row_index: np.ndarray
    left_out: LeftOut
    evidence: EvidenceTerms
    judged: np.ndarray
    judgments: list[Judgment]


class Learned(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    fits : list of Fit
        The machines to average, in decreasing order of their shares.
    history : list of dict
        The settings that were tried.
    is_complete : bool
        Whether the search ended without reaching the time limit.
    trend : list of Fit
        Machines on landmarks, each with a share of 1, whose sum was first subtracted from the targets; usually empty.
    """

    fits: list[Fit]
    history: list[dict[str, Any]]
    is_complete: bool
    trend: list[Fit]

    @property
    def machines(self) -> list[Machine]:
        """The machines of `fits`."""
        return [fit.machine for fit in self.fits]


class Rows(NamedTuple):
    """A table, and nested samples of its rows in random order.

    Attributes
    ----------
    table : Table
        All rows.
    some : Table
        The rows from which metrics are learned.
    judged : Table
        The first rows of `some`, on which settings are judged.
    few : Table
        The first rows of `judged`, on which all settings are tried.
    place : ndarray
        The indices in `table` of the rows of `some`.
    """

    table: Table
    some: Table
    judged: Table
    few: Table
    place: np.ndarray

    @classmethod
    def drawn(cls, table: Table, random: np.random.RandomState) -> "Rows":
        """Draw the rows at random; if the table has many rows, at least half of them are not used for any metric."""
        # The order of distinct rows depends on their values. In random order, the first few are a random sample.
        most = min(len(table) // 2, MOST_DENSE_ROWS) if len(table) > MANY_ROWS else METRIC_ROWS
        place = random.permutation(len(table))[:most]
        # If there are few rows, the samples are one and the same table, with one copy of every warp.
        some = table.take(place)
        judged = some if len(some) <= JUDGE_ROWS else table.take(place[:JUDGE_ROWS])
        few = judged if len(judged) <= SCREEN_ROWS else table.take(place[:SCREEN_ROWS])
        return cls(table, some, judged, few, place)

    def fresh(self) -> np.ndarray:
        """Return a mask of the rows of the table that are not among `some`."""
        fresh = np.ones(len(self.table), dtype=bool)
        fresh[self.place] = False
        return fresh


def averaged(search: Search, space: Space, trials: list[Trial]) -> list[tuple[Trial, float]]:
    """Return the trials with a share above 0 in the average, and their shares; without averaging, one trial."""
    if not space.average or len(trials) == 1:
        return [(simplest_of_the_best(trials), 1.0)]
    shares = search.fitter.shares([trial.left_out for trial in trials])
    return [(trial, float(share)) for trial, share in zip(trials, shares, strict=True) if share > 0]
