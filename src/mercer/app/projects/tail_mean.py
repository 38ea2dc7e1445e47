"""How large the mean of heavy-tailed losses may be, beyond what the given rows show."""

import numpy as np

# The share of the losses that form the tail, and the fewest and most losses in it.
TAIL, FEWEST, MOST = 0.2, 10, 500
# The grid of shapes and scales of the tail. The mean of a distribution with a shape of 1 is infinite.
SHAPES = np.linspace(-0.4, 0.95, 46)
SCALES = np.exp(np.linspace(-1.5, 1.5, 41))
DRAWS = 1000


def draws_of_mean(loss: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Return draws from the posterior of the mean of all losses, given some of them.

    The rows that a bootstrap draws have no loss larger than the largest that was seen. If losses have a heavy tail, the
    mean then comes out too small: 90 % intervals of the RMSE of errors with three degrees of freedom hold it in 78 to
    80 % of cases. The largest fifth of the losses, minus the threshold u that they exceed, are therefore assumed to
    follow a generalized Pareto distribution of shape xi and scale s, with density (1 + xi z / s)^(-1/xi - 1) / s and
    mean s / (1 - xi), as losses beyond a high threshold do (Pickands 1975). The prior of the shape falls to 0 at
    xi = 1, and that of the scale is flat in its logarithm; draws are from the posterior on a grid. The losses below u
    contribute their mean, with its standard error.

    Parameters
    ----------
    loss : ndarray of shape (n,)
        Not negative, and not all equal.
    random : RandomState

    Returns
    -------
    ndarray of shape (1000,)

    Notes
    -----
    O(n log n), and some 1900 densities of the at most 500 losses in the tail.
    """
    n = len(loss)
    k = int(np.clip(round(TAIL * n), min(FEWEST, n - 2), MOST))
    ordered = np.sort(loss)
    body, u = ordered[: n - k], ordered[n - k - 1]
    z = ordered[n - k :] - u
    if z.mean() <= 0:  # the losses in the tail are all equal
        return np.full(DRAWS, loss.mean())
    xi, s = (grid.ravel() for grid in np.meshgrid(SHAPES, z.mean() * SCALES, indexing="ij"))
    log_posterior = log_density_of_tail(z, xi, s) + np.log1p(-xi)
    weights = np.exp(log_posterior - log_posterior.max())
    drawn = random.choice(len(xi), DRAWS, p=weights / weights.sum())
    # Spread the draws between the points of the grid.
    shape = xi[drawn] + (SHAPES[1] - SHAPES[0]) * random.uniform(-0.5, 0.5, DRAWS)
    scale = s[drawn] * (SCALES[1] / SCALES[0]) ** random.uniform(-0.5, 0.5, DRAWS)
    tail = u + scale / (1.0 - shape)
    share = random.beta(k, n - k, DRAWS)
    below = body.mean() + body.std() / np.sqrt(len(body)) * random.normal(size=DRAWS)
    return (1.0 - share) * below + share * tail


def log_density_of_tail(z: np.ndarray, xi: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the log likelihood of each pair of a shape and a scale up to a constant, of shape (len(xi),)."""
    inner = 1.0 + xi[:, None] * z / s[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.where(np.abs(xi[:, None]) < 1e-9, z / s[:, None], (1.0 / xi[:, None] + 1.0) * np.log(inner))
    return -len(z) * np.log(s) - np.where(inner > 0, powers, np.inf).sum(axis=1)
