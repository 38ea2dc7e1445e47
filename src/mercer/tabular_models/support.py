"""The support of a prediction: whether a row lies where there are training rows."""

from collections.abc import Sequence

import numpy as np

from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.machine import Machine


def seen_variances(machine: Machine, left_out: LeftOut) -> np.ndarray:
    """Return the variances of the function at left-out rows for an output scale of 1, in ascending order."""
    return np.sort(np.maximum(left_out.unit_variance - machine.ridge / left_out.weights, 0.0))


def support_of(variances: Sequence[np.ndarray], seen: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Return the share of left-out training rows whose variance is at least that of each new row, of shape (n,).

    For each machine, this is (1 + the number of left-out rows with at least this variance) / (1 + their number). The
    result is the average weighted by the shares of the machines. For a row from the same distribution as the training
    rows it is a p-value: it is at most u with probability about u. The prior variance is not used, so this also works
    for kernels whose prior variance grows with the distance, such as the linear kernel.

    Parameters
    ----------
    variances : sequence of ndarray of shape (n,)
        For each machine, the variances of the function at the new rows.
    seen : sequence of ndarray of shape (m,)
        For each machine, the variances at left-out rows, in ascending order.
    shares : ndarray of shape (k,)
    """
    common = [
        (1 + len(known) - np.searchsorted(known, values, side="left")) / (1 + len(known))
        for values, known in zip(variances, seen, strict=True)
    ]
    return shares @ np.stack(common)
