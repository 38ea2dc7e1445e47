"""The one noise model of a table: what identical rows share, and what each target has for itself."""

from torch import Tensor


def effective_weights(weights: Tensor | None, shared_noise: float) -> Tensor | None:
    """Return the weights v under which the noise of the means of identical rows is ridge / v.

    A row that stands for w others has the mean of their targets. Of the noise variance `ridge` of one target
    a part gamma = `shared_noise` is common to all of them, and the rest averages out: the mean has the noise
    gamma ridge + (1 - gamma) ridge / w = ridge / v. Everything that solves, scores or predicts takes v for the weight
    of the row, so that there is one noise model: K + gamma ridge I + (1 - gamma) ridge W^-1.

    Parameters
    ----------
    weights : tensor of shape (n,) or None
        w, None where all are 1.
    shared_noise : float
        gamma in [0, 1).
    """
    if weights is None or shared_noise == 0.0:
        return weights
    return weights / (shared_noise * weights + (1.0 - shared_noise))
