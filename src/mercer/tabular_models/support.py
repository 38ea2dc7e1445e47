"""How well training rows support a prediction: whether a row lies where the training rows lie."""

from collections.abc import Sequence

import numpy as np

from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.machine import Machine


def seen_variances(machine: Machine, left_out: LeftOut) -> np.ndarray:
    """Return the variance of the function at each left-out row for an output scale of 1, ascending."""
    return np.sort(np.maximum(left_out.unit_variance - machine.ridge / left_out.weights, 0.0))


def support_of(variances: Sequence[np.ndarray], seen: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Return how common it is among training rows to be predicted with as large a variance, of shape (n,).

    Of each machine (1 + the number of left-out rows with at least that variance) / (1 + their number), averaged by the
    shares. At a row drawn as the training rows were, this is a p-value: at most u with probability about u. It takes no
    prior variance, and so serves kernels whose prior grows with the distance, such as the linear one, as well.

    Parameters
    ----------
    variances : sequence of ndarray of shape (n,)
        Of the function at new rows, one a machine.
    seen : sequence of ndarray of shape (m,)
        Of the same machines at left-out rows, ascending.
    shares : ndarray of shape (k,)
    """
    common = [
        (1 + len(known) - np.searchsorted(known, values, side="left")) / (1 + len(known))
        for values, known in zip(variances, seen, strict=True)
    ]
    return shares @ np.stack(common)
