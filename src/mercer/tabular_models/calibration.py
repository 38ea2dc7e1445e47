"""Outputs of a classifier turned into probabilities by a softmax that is fitted on outputs for rows left out."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

# Offsets are drawn to the log shares of the classes as if by this many rows: a class of few rows has no more to say.
PRIOR_ROWS = 1.0


class Calibration(NamedTuple):
    """log p = log_softmax(scale * outputs + offsets)."""

    scale: float
    offsets: np.ndarray

    def log_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the classes, of the shape of `outputs`."""
        return log_softmax(self.scale * outputs + self.offsets, axis=1)


def fit_calibration(
    outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, log_shares: np.ndarray
) -> Calibration:
    """Return the scale and offsets under which the labels are likeliest.

    Minimizes - sum_i w_i sum_c t_ic log p_ic + (PRIOR_ROWS / 2) |offsets - log_shares|^2 over scale and offsets, a
    convex problem in few numbers.

    Parameters
    ----------
    outputs : ndarray of shape (n, c)
        Of rows left out; those of the fit itself would make the probabilities too sure.
    targets : ndarray of shape (n, c)
        1 for the class of a row and 0 for others; shares where a row stands for several of different classes.
    weights : ndarray of shape (n,)
    log_shares : ndarray of shape (c,)
    """

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = log_softmax(np.exp(theta[0]) * outputs + theta[1:], axis=1)
        apart = theta[1:] - log_shares
        misses = (np.exp(log_p) - targets) * weights[:, None]
        value = -float(weights @ (targets * log_p).sum(axis=1)) + 0.5 * PRIOR_ROWS * float(apart @ apart)
        by_scale = float((misses * outputs).sum()) * np.exp(theta[0])
        return value, np.append(by_scale, misses.sum(axis=0) + PRIOR_ROWS * apart)

    start = np.append(1.0, log_shares)
    bounds = [(-7.0, 7.0)] + [(None, None)] * len(log_shares)
    theta = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(float(np.exp(theta[0])), theta[1:])
