"""The noise model of a table: a part of the noise is shared by identical rows, and the rest is independent."""

from torch import Tensor


def effective_weights(weights: Tensor | None, shared_noise: float) -> Tensor | None:
    """Return the weights v for which ridge / v is the noise variance of the mean target of identical rows.

    A row that represents w identical rows has the mean of their targets. The noise of a single target has the variance
    `ridge`. All targets share a part gamma = `shared_noise` of it, and the rest averages out. The noise variance of the
    mean is therefore gamma ridge + (1 - gamma) ridge / w = ridge / v. All fits, scores and predictions use v as the
    weight of the row, so that there is one noise model: K + gamma ridge I + (1 - gamma) ridge W^-1.

    Parameters
    ----------
    weights : tensor of shape (n,) or None
        The weights w; None if all are 1.
    shared_noise : float
        The part gamma, in [0, 1).

    Returns
    -------
    tensor of shape (n,) or None
    """
    if weights is None or shared_noise == 0.0:
        return weights
    return weights / (shared_noise * weights + (1.0 - shared_noise))
