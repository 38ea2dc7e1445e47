"""Calibration: a softmax, fitted on the outputs for left-out rows, turns outputs of classifiers into probabilities."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

# Offsets are shrunk toward the log shares of the classes, by a penalty as strong as this many rows: a class of few rows
# contains little information on its offset.
PRIOR_ROWS = 1.0
# If n left-out rows are all predicted correctly, the next is wrong with probability 1 / (n + 2) (Laplace's rule). As in
# Platt's calibration, this part of every label is given to the shares of the classes. Otherwise the slopes would be
# infinite if the rows are separated without an error.
ROWS_IN_DOUBT = 1.0
# With slopes beyond this, outputs between 0 and 1 give probabilities of 0 and 1.
LARGEST_SLOPE = 1e3


class Calibration(NamedTuple):
    """log p = log_softmax(scale * outputs + offsets)."""

    scale: float
    offsets: np.ndarray

    def logits(self, outputs: np.ndarray) -> np.ndarray:
        """Return the arguments of the softmax, of the shape of `outputs`."""
        return self.scale * outputs + self.offsets

    def log_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the classes, of the shape of `outputs`."""
        return log_softmax(self.logits(outputs), axis=1)


class Softmax(NamedTuple):
    """log p = log_softmax(sum_j slopes_j outputs_j + offsets) over several classifiers."""

    slopes: np.ndarray
    offsets: np.ndarray


def fit_softmax(outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, log_shares: np.ndarray) -> Softmax:
    """Return the non-negative slopes and the offsets that maximize the penalized likelihood of the classes.

    Minimizes - sum_i w_i sum_c t_ic log p_ic + (PRIOR_ROWS / 2) |offsets - log_shares|^2, a convex problem in m + c
    numbers. Here t are the targets, a small part of which is given to the shares of the classes.

    Parameters
    ----------
    outputs : ndarray of shape (m, n, c)
        The outputs of m classifiers for left-out rows. Outputs for the rows of the fit would make the probabilities too
        extreme.
    targets : ndarray of shape (n, c)
        1 for the class of a row and 0 for the others; shares if a row represents identical rows of several classes.
    weights : ndarray of shape (n,)
    log_shares : ndarray of shape (c,)
        The logarithms of the shares of the classes.

    Returns
    -------
    Softmax
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
    """Return the scale and the offsets for one classifier with outputs of shape (n, c); see `fit_softmax`."""
    slopes, offsets = fit_softmax(outputs[None], targets, weights, log_shares)
    return Calibration(float(slopes[0]), offsets)
