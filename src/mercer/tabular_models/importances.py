"""How much each column counts in an average of machines: how far its predictions move when the column is exchanged."""

from collections.abc import Sequence

import numpy as np

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block
from mercer.linalg import threads_for
from mercer.tabular_models.machine import Machine

# Rows whose columns are exchanged: fewer where columns or centers are many, so that the values of the kernel that are
# computed in all stay below a bound.
MOST_ROWS, FEWEST_ROWS, MOST_VALUES = 500, 50, 2e7
# Rows with an exchanged column that are predicted at a time: of few rows, the calls took as long as the work.
ROWS_AT_A_TIME = 4000
# Of tables with more columns than this the effects are those of the prediction's linear part at each row.
MOST_COLUMNS = 200
# Arrays of the size of these slopes that are there at the same time.
COPIES_OF_SLOPES = 12


def total_effects(
    machines: Sequence[Machine], X: np.ndarray, random: np.random.RandomState, working_memory: float = WORKING_MEMORY
) -> np.ndarray:
    """Return half the mean squared change of the prediction when a column gets the value of another row.

    These are the total effects of Sobol in the estimate of Jansen (1999): the part of the prediction's variance that
    would be lost without the column, with everything that it does together with others. Gradients, of which the metric
    of a recursive feature machine is made, say how steep the prediction is; a column that is nearly constant may be
    steep and count for little.

    They need no targets. With E(y | x) = f(x), twice the total effect is the growth of the squared error when the
    column is permuted, which `mercer.explain.permutation_importances` takes from rows that were left out.

    Parameters
    ----------
    machines : sequence of Machine
    X : ndarray of shape (n, d)
        Rows of the table.
    random : RandomState
        Draws the rows and what they get.
    working_memory : float, default=64.0

    Returns
    -------
    ndarray of shape (d,)
        Summed over the outputs.

    Notes
    -----
    d + 1 predictions of some rows: about 2e7 values of the kernel at the most. Beyond 200 columns the squared change is
    that of the linear part, the squared slope times twice the variance of the column: one pass for all columns.
    """
    n, d = X.shape
    values_a_row = (d + 1) * sum(
        len(machine.rows) if machine.leaves is None else np.bincount(machine.leaves).max() for machine in machines
    )
    n_rows = int(min(n, max(FEWEST_ROWS, min(MOST_ROWS, MOST_VALUES / values_a_row))))
    drawn, donors = random.permutation(n)[:n_rows], random.permutation(n)[:n_rows]
    x = X[drawn].astype(np.float64)
    # Many predictions of few rows: with two threads, waiting for each other took most of the time.
    with threads_for(n_rows):
        if d > MOST_COLUMNS:
            return squared_slopes(machines, x, working_memory) * X.var(axis=0, dtype=np.float64)

        def predicted(rows: np.ndarray) -> np.ndarray:
            return np.sum([machine.share * machine.mean(rows, working_memory) for machine in machines], axis=0)

        before, effects = predicted(x), np.zeros(d)
        for columns in np.array_split(np.arange(d), -(-d * n_rows // ROWS_AT_A_TIME)):
            exchanged = np.repeat(x[None], len(columns), axis=0)
            exchanged[np.arange(len(columns)), :, columns] = X[np.ix_(donors, columns)].T
            after = predicted(exchanged.reshape(-1, d)).reshape(len(columns), n_rows, -1)
            effects[columns] = 0.5 * ((after - before) ** 2).mean(axis=1).sum(axis=1)
        return effects


def squared_slopes(machines: Sequence[Machine], x: np.ndarray, working_memory: float) -> np.ndarray:
    """Return the mean squared slope of the average in every column, summed over the outputs, of shape (d,)."""
    total = np.zeros(x.shape[1])
    # A row has a slope for every output and column, and some copies of them on the way.
    bytes_a_row = COPIES_OF_SLOPES * 8 * machines[0].alpha.shape[1] * x.shape[1]
    for rows in row_slices(len(x), rows_per_block(len(x), bytes_a_row, working_memory)):
        slopes = np.zeros((len(x[rows]), machines[0].alpha.shape[1], x.shape[1]))
        for machine in machines:
            slopes += machine.share * machine.gradients(x[rows], working_memory)
        total += np.square(slopes, out=slopes).sum(axis=(0, 1))
    return total / len(x)


def shares_of_effects(effects: np.ndarray) -> np.ndarray:
    """Return effects that sum to 1; equal ones where nothing has any."""
    total = effects.sum()
    return effects / total if total > 0 else np.full(len(effects), 1.0 / len(effects))
