"""Classes as Gaussians of one covariance: distances to their centroids, and a temperature that keeps them honest."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

TEMPERATURES = (1e-2, 1e4)


def squared_class_distances(values: np.ndarray, centroids: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return (v - centroid)^T covariance^-1 (v - centroid) for each row v and each class, of shape (n, c).

    The covariance gets the smallest spread that can be told from rounding, so that classes that are single points have
    a density too.
    """
    k = len(covariance)
    floor = np.finfo(np.float32).eps * max(np.trace(covariance) / k, np.finfo(np.float64).tiny)
    lower = np.linalg.cholesky(covariance + floor * np.eye(k))
    white, centres = (np.linalg.solve(lower, rows.T).T for rows in (values, centroids))
    return cdist(white, centres, "sqeuclidean")


def log_joint(squares: np.ndarray, priors: np.ndarray, temperature: float) -> np.ndarray:
    """Return log prior + log density of each class, up to a constant."""
    with np.errstate(divide="ignore"):
        return np.log(priors) - 0.5 * squares / temperature


def best_temperature(squares: np.ndarray, priors: np.ndarray, of_row: np.ndarray) -> float:
    """Return the temperature that minimises the log loss of the rows' classes; squared distances are divided by it.

    Tails that are heavier than Gaussian make a far row look surer than it is; a temperature above 1 makes up for that.
    """
    rows = np.arange(len(squares))
    possible = priors[of_row] > 0
    if not possible.any():
        return 1.0

    def loss(log_temperature: float) -> float:
        joint = log_joint(squares, priors, np.exp(log_temperature))
        return float(np.mean((np.logaddexp.reduce(joint, axis=1) - joint[rows, of_row])[possible]))

    return float(np.exp(minimize_scalar(loss, bounds=tuple(np.log(TEMPERATURES)), method="bounded").x))
