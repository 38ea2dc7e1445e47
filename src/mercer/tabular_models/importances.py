"""The importance of each column: the change of the predictions when its values are exchanged between rows."""

from collections.abc import Sequence

import numpy as np

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block
from mercer.linalg import threads_for
from mercer.tabular_models.machine import Machine

# Number of rows whose columns are exchanged. It is smaller if the table has many columns or the machines have many
# rows, so that at most about MOST_VALUES kernel values are computed.
MOST_ROWS, FEWEST_ROWS, MOST_VALUES = 500, 50, 2e7
# Number of rows with an exchanged column that are predicted together, since calls with few rows have a large overhead.
ROWS_AT_A_TIME = 4000
# For tables with more columns than this, the effects are those of the linear part of the prediction at each row.
MOST_COLUMNS = 200
# Number of arrays of the size of the slopes in memory at the same time.
COPIES_OF_SLOPES = 12


def total_effects(
    machines: Sequence[Machine], X: np.ndarray, random: np.random.RandomState, working_memory: float = WORKING_MEMORY
) -> np.ndarray:
    """Return half the mean squared change of the prediction when a column gets its value from another row.

    These are the total effects of Sobol, as estimated by Jansen (1999): the part of the variance of the prediction that
    would be lost without the column, including its interactions with other columns. Gradients, which determine the
    metric of a recursive feature machine, measure how steep the prediction is. A prediction may be steep in a column
    that is nearly constant and has little effect.

    No targets are needed. If E(y | x) = f(x), twice the total effect is the increase of the squared error when the
    column is permuted, which `mercer.explain.permutation_importances` measures on left-out rows.

    Parameters
    ----------
    machines : sequence of Machine
        The machines, whose average by their shares is the prediction.
    X : ndarray of shape (n, d)
        Rows of the table.
    random : RandomState
        Draws the rows that are predicted, and those that their values are exchanged with.
    working_memory : float, default=64.0

    Returns
    -------
    ndarray of shape (d,)
        The effects, summed over the outputs.

    Notes
    -----
    d + 1 predictions of some rows, with at most about 2e7 kernel values. With more than 200 columns, the squared change
    is that of the linear part of the prediction, the squared slope times twice the variance of the column. One pass is
    then enough for all columns.
    """
    n, d = X.shape
    values_a_row = (d + 1) * sum(
        len(machine.rows) if machine.leaves is None else np.bincount(machine.leaves).max() for machine in machines
    )
    n_rows = int(min(n, max(FEWEST_ROWS, min(MOST_ROWS, MOST_VALUES / values_a_row))))
    drawn, donors = random.permutation(n)[:n_rows], random.permutation(n)[:n_rows]
    x = X[drawn].astype(np.float64)
    # For predictions of few rows, two threads would spend most of the time waiting for each other.
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
    """Return the mean squared slope of the prediction in each column, summed over the outputs, of shape (d,)."""
    total = np.zeros(x.shape[1])
    # A row has a slope for every output and column, of which several copies are in memory.
    bytes_a_row = COPIES_OF_SLOPES * 8 * machines[0].alpha.shape[1] * x.shape[1]
    for rows in row_slices(len(x), rows_per_block(len(x), bytes_a_row, working_memory)):
        slopes = np.zeros((len(x[rows]), machines[0].alpha.shape[1], x.shape[1]))
        for machine in machines:
            slopes += machine.share * machine.gradients(x[rows], working_memory)
        total += np.square(slopes, out=slopes).sum(axis=(0, 1))
    return total / len(x)


def shares_of_effects(effects: np.ndarray) -> np.ndarray:
    """Return the effects divided by their sum, or equal shares if all effects are 0."""
    total = effects.sum()
    return effects / total if total > 0 else np.full(len(effects), 1.0 / len(effects))
