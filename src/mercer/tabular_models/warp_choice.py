"""The choice of a warp for each column, starting from one warp for all, by the errors of left-out rows."""

import itertools
from typing import Any

import numpy as np

from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate

# Only the MOST_COLUMNS most important columns under the metric are tried, and none in tables with more than
# MANY_COLUMNS columns, where a single column has little effect.
MOST_COLUMNS, MANY_COLUMNS = 20, 200


def warp_by_column(iterate: Iterate, warp: str, table: Table, fitter: Fitter) -> tuple[str, ...] | str:
    """Return a warp for each column, or the given warp if no change is clearly better.

    The kernel and the ridge are kept: columns are standardized under every warp, so that length scales remain suitable.
    A change is accepted if its gain on left-out rows exceeds the standard error of the gain, since some of many changes
    look better by chance.

    Parameters
    ----------
    iterate : Iterate
    warp : str
        The warp of all columns at the start.
    table : Table
    fitter : Fitter
        Scores predictions of left-out rows.

    Notes
    -----
    O(n^3) for each of at most 40 changes.
    """

    def scores(warps: Any) -> np.ndarray:
        K = iterate.kernel.matrix(table.warped(tuple(warps)))
        solution = ridge_leave_one_out(K, table.y, iterate.ridge, table.weights)
        return fitter.error_scores(LeftOut.from_solution(solution, table))

    d, mass = table.n_columns, table.mass.cpu().numpy()
    if d > MANY_COLUMNS:
        return warp
    importances = iterate.kernel.single_metric().importances(d)
    chosen = [warp] * d
    best = scores(chosen)
    for column, name in itertools.product(np.argsort(-importances, kind="stable")[:MOST_COLUMNS], WARPS):
        if name == chosen[column] or table.columns(name).warps_[column] != name:
            continue
        tried = [*chosen[:column], name, *chosen[column + 1 :]]
        gained = scores(tried)
        if is_clearly_better(gained, best, mass):
            best, chosen = gained, tried
    return warp if all(name == warp for name in chosen) else tuple(chosen)
