"""Classes as Gaussians with one covariance, and a temperature that calibrates their probabilities."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

# The temperature is searched between these bounds.
TEMPERATURES = (1e-2, 1e4)


class GaussianClasses(NamedTuple):
    """The Gaussians of c classes in k dimensions.

    Attributes
    ----------
    centroids : ndarray of shape (c, k)
        The center of each class.
    covariance : ndarray of shape (k, k)
        The covariance within the classes, pooled over all of them.
    priors : ndarray of shape (c,)
    temperature : float
        The number by which squared distances to the centers are divided.
    log_loss : float
        The weighted log loss of the rows that the temperature was chosen on.
    """

    centroids: np.ndarray
    covariance: np.ndarray
    priors: np.ndarray
    temperature: float
    log_loss: float


def gaussian_classes(
    values: np.ndarray, of_row: np.ndarray, priors: np.ndarray, weights: np.ndarray, judges: np.ndarray
) -> GaussianClasses:
    """Describe classes by Gaussians with one covariance, and choose the temperature.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        The leave-one-out values of the rows; the fitted values would lie too close to their centers.
    of_row : ndarray of shape (n,)
        The class of each row, from 0 to c - 1.
    priors : ndarray of shape (c,)
    weights : ndarray of shape (c,)
        The weight of a row of each class in the log loss.
    judges : ndarray of shape (j,)
        The rows whose log loss the temperature minimizes.
    """
    counts = np.bincount(of_row, minlength=len(priors))
    centroids = np.stack([np.bincount(of_row, column, len(priors)) for column in values.T], axis=1) / counts[:, None]
    within = values - centroids[of_row]
    covariance = within.T @ within / max(1, len(values) - len(priors))
    squares = squared_class_distances(values[judges], centroids, covariance)
    squares *= without_the_row(of_row[judges], counts)
    temperature, loss = best_temperature(squares, priors, of_row[judges], weights[of_row[judges]])
    return GaussianClasses(centroids, covariance, priors, temperature, loss)


def without_the_row(of_row: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the factors by which squared distances grow if each row is left out of the center of its class, (n, c).

    The center of n_y rows without row v is mu + (mu - v) / (n_y - 1), so v is n_y / (n_y - 1) times as far from it.
    Without this correction, classes of few rows look better separated than they are: for 60 rows of three classes with
    uninformative columns, the log loss was 1.19 and is 1.13 with it (log 3 is 1.10; eight draws).
    """
    growth = np.ones((len(of_row), len(counts)))
    own = counts[of_row]
    growth[np.arange(len(of_row)), of_row] = (own / np.maximum(own - 1, 1)) ** 2
    return growth


def covariance_root(covariance: np.ndarray) -> np.ndarray:
    """Return the lower triangular Cholesky factor of the covariance of the classes.

    A small multiple of the identity, just above rounding errors, is added first. Classes whose rows are all equal then
    have a density too.
    """
    k = len(covariance)
    floor = np.finfo(np.float32).eps * max(np.trace(covariance) / k, np.finfo(np.float64).tiny)
    return np.linalg.cholesky(covariance + floor * np.eye(k))


def linear_log_joint(
    centroids: np.ndarray, covariance: np.ndarray, priors: np.ndarray, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes (k, c) and offsets (c,) of linear functions that are `log_joint` up to what all classes share.

    The classes have one covariance S, so the functions are (v^T S^-1 mu - mu^T S^-1 mu / 2) / temperature + log prior.
    """
    lower = covariance_root(covariance)
    slopes = np.linalg.solve(lower.T, np.linalg.solve(lower, centroids.T)) / temperature
    with np.errstate(divide="ignore"):
        return slopes, np.log(priors) - 0.5 * np.einsum("kj,jk->k", centroids, slopes)


def squared_class_distances(values: np.ndarray, centroids: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the squared distances (v - center)^T covariance^-1 (v - center) of rows v and classes, of shape (n, c)."""
    lower = covariance_root(covariance)
    white, centers = (np.linalg.solve(lower, rows.T).T for rows in (values, centroids))
    return cdist(white, centers, "sqeuclidean")


def log_joint(squares: np.ndarray, priors: np.ndarray, temperature: float) -> np.ndarray:
    """Return log prior + log density of each class, up to a constant, from squared distances of shape (n, c)."""
    with np.errstate(divide="ignore"):
        return np.log(priors) - 0.5 * squares / temperature


def best_temperature(
    squares: np.ndarray, priors: np.ndarray, of_row: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Return the temperature that minimizes the log loss of the classes of the rows, and this loss.

    Squared distances are divided by the temperature. If tails are heavier than Gaussian, the probabilities of rows far
    from the centers are too extreme, and a temperature above 1 corrects this. Classes with prior 0 do not count.
    """
    mass = np.ones(len(squares)) if weights is None else weights
    counted = (priors[of_row] > 0) & (mass > 0)
    if not counted.any():
        return 1.0, 0.0
    of_row, mass = of_row[counted], mass[counted]
    # Classes are the first axis, so that reductions over classes use contiguous memory: ten times as fast.
    halves = np.ascontiguousarray(squares[counted].T) * -0.5
    with np.errstate(divide="ignore"):
        logs = np.log(priors)[:, None]
    own, own_logs = halves[of_row, np.arange(len(of_row))], logs[of_row, 0]

    def loss(log_temperature: float) -> float:
        joint = halves / np.exp(log_temperature)
        joint += logs
        top = joint.max(axis=0)
        joint -= top
        losses = top + np.log(np.exp(joint, out=joint).sum(axis=0)) - own / np.exp(log_temperature) - own_logs
        return float(np.average(losses, weights=mass))

    found = minimize_scalar(loss, bounds=tuple(np.log(TEMPERATURES)), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x)), float(found.fun)
