"""Outputs of classifiers turned into probabilities by a softmax that is fitted on outputs for rows left out."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

# Offsets are drawn to the log shares of the classes as if by this many rows: a class of few rows has no more to say.
PRIOR_ROWS = 1.0
# Of n left-out rows that are all predicted rightly, one in n + 2 may yet be wrong (Laplace's rule): so much of every
# label goes to the shares of the classes, as in Platt's calibration. Without it rows that are separated without an
# error would send the slopes to infinity.
ROWS_IN_DOUBT = 1.0
# Slopes beyond this are probabilities of 0 and 1 for outputs between 0 and 1.
LARGEST_SLOPE = 1e3


class Calibration(NamedTuple):
    """log p = log_softmax(scale * outputs + offsets)."""

    scale: float
    offsets: np.ndarray

    def logits(self, outputs: np.ndarray) -> np.ndarray:
        """Return what the softmax is taken of, of the shape of `outputs`."""
        return self.scale * outputs + self.offsets

    def log_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the classes, of the shape of `outputs`."""
        return log_softmax(self.logits(outputs), axis=1)


class Softmax(NamedTuple):
    """log p = log_softmax(sum_j slopes_j outputs_j + offsets) over several classifiers."""

    slopes: np.ndarray
    offsets: np.ndarray


def fit_softmax(outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, log_shares: np.ndarray) -> Softmax:
    """Return the slopes, none negative, and the offsets under which the labels are likeliest.

    Minimizes - sum_i w_i sum_c t_ic log p_ic + (PRIOR_ROWS / 2) |offsets - log_shares|^2, a convex problem in few
    numbers, where t are the targets with a little of them given to the shares of the classes.

    Parameters
    ----------
    outputs : ndarray of shape (m, n, c)
        Of m classifiers for rows left out; those of the fit itself would make the probabilities too sure.
    targets : ndarray of shape (n, c)
        1 for the class of a row and 0 for others; shares where a row stands for several of different classes.
    weights : ndarray of shape (n,)
    log_shares : ndarray of shape (c,)
    """
    m = len(outputs)
    doubt = ROWS_IN_DOUBT / (weights.sum() + 2.0 * ROWS_IN_DOUBT)
    targets = (1.0 - doubt) * targets + doubt * np.exp(log_shares)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        slopes, offsets = theta[:m], theta[m:]
        log_p = log_softmax(np.tensordot(slopes, outputs, 1) + offsets, axis=1)
        apart = offsets - log_shares
        misses = (np.exp(log_p) - targets) * weights[:, None]
        value = -float(weights @ (targets * log_p).sum(axis=1)) + 0.5 * PRIOR_ROWS * float(apart @ apart)
        by_slope = np.tensordot(outputs, misses, 2)
        return value, np.append(by_slope, misses.sum(axis=0) + PRIOR_ROWS * apart)

    start = np.append(np.full(m, 4.0 / m), log_shares)
    bounds = [(0.0, LARGEST_SLOPE)] * m + [(None, None)] * len(log_shares)
    theta = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x
    return Softmax(theta[:m], theta[m:])


def fit_calibration(
    outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, log_shares: np.ndarray
) -> Calibration:
    """Return the scale and the offsets of one classifier, whose outputs are of shape (n, c); see `fit_softmax`."""
    slopes, offsets = fit_softmax(outputs[None], targets, weights, log_shares)
    return Calibration(float(slopes[0]), offsets)
