"""What the values of each row would be had it not been in the fit, in closed form."""

import torch
from torch import Tensor

from mercer.discriminant.groups import Discriminants, Groups, double_centered

# Leverages may be off by this much, relative to 1 - leverage, if that makes them cheaper.
LEVERAGE_ERROR = 1e-3
# How leverages change from one ridge to another is worked out on at most this many rows, and not at all for ridges
# within this factor of each other.
LEVERAGE_ROWS = 1000
SAME_RIDGE = 1.05
# A ratio above 1 by this much belongs to the classes; one without class means is that of a principal component.
CLASS_RATIO = 1.0 + 1e-6


def own_means(U: Tensor, groups: Groups) -> tuple[Tensor, Tensor]:
    """Return the mean of each row's class, P u, and that of all rows."""
    return groups.project(U), U.mean(dim=0)


def scores(U: Tensor, mu: Tensor, of_class: Tensor, of_all: Tensor) -> Tensor:
    """Return t = C u / mu + P u, of which u is the ridge regression on the rows; the means are `own_means`."""
    return (U - of_all) / mu + of_class


def effective_ridges(ridge: float, mu: Tensor) -> Tensor:
    """Return the ridge with which each component regresses its class means; the ridge itself where it has none."""
    return torch.where(mu > CLASS_RATIO, ridge * mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0), ridge)


def precision_of_leverages(A: Tensor, ridge: float) -> torch.dtype | None:
    """Return float32 where the factor of A + ridge I can be inverted in it with leverages right to a thousandth.

    The condition number of A + ridge I is at most 1 + trace A / ridge, that of the factor the root of that.
    """
    condition = 1.0 + float(A.diagonal().sum()) / ridge
    return torch.float32 if torch.finfo(torch.float32).eps * condition**0.5 < LEVERAGE_ERROR else None


def leverages_of_components(
    K: Tensor, leverage: Tensor, ridge: float, mu: Tensor, regularizer: str, intercept: bool
) -> Tensor:
    """Return the leverages H_ii at the effective ridge of each component, of shape (n, k), given those at the ridge.

    Up to 1000 rows exact, from one eigendecomposition. Of more, every n/1000-th row says by how much the logit of a
    leverage changes on average from the one ridge to the other.
    """
    ridges = torch.cat([mu.new_full((1,), ridge), effective_ridges(ridge, mu)])
    if bool((ridges <= SAME_RIDGE * ridge).all()):
        return leverage[:, None].expand(-1, len(mu))
    step = -(-len(K) // LEVERAGE_ROWS)
    part = K if step == 1 else K[::step, ::step].contiguous()
    part = double_centered(part) if intercept and step > 1 else part
    values, V = torch.linalg.eigh(part)
    values = values.clamp(min=0.0) if regularizer == "rkhs" else values.square()
    found = V.square() @ (values[:, None] / (values[:, None] + ridges))
    if step == 1:
        return found[:, 1:]
    logits = torch.logit(found, eps=LEVERAGE_ERROR)
    shift = (logits[:, 1:] - logits[:, :1]).mean(dim=0)
    return torch.sigmoid(torch.logit(leverage, eps=torch.finfo(leverage.dtype).eps)[:, None] + shift)


def left_out_values(
    U: Tensor, mu: Tensor, of_class: Tensor, of_all: Tensor, leverage: Tensor, leverages: Tensor, share: float
) -> Tensor:
    """Return what each row's values would be had it not been in the fit.

    A component with mu > 1 is s = mu / (mu - 1) times the ridge regression of its class means, m = P u - mean(u) / mu,
    with the effective ridge. These held, row i left out gets (u_i - s h_i m_i) / (1 - h_i), h_i its leverage at that
    ridge. For the others the score t = C u / mu + P u is held, which gives t_i - (t_i - u_i) / (1 - H_ii). The mean of
    all rows, where there is an intercept, has leverage 1/n beside.

    Parameters
    ----------
    U : tensor of shape (n, k)
        Of all rows of the fit, or of some.
    mu : tensor of shape (k,)
    of_class : tensor of shape (n, k)
        P u: the mean of each row's class, over all rows of the fit.
    of_all : tensor of shape (k,)
        The mean over all rows of the fit.
    leverage : tensor of shape (n,)
        At the ridge of the discriminants.
    leverages : tensor of shape (n, k)
        At the effective ridge of each component.
    share : float
        The leverage of a row in the mean: 1/n of the rows of the fit, or 0 where features are not centered.
    """
    eps = torch.finfo(U.dtype).eps
    T = scores(U, mu, of_class, of_all)
    held = T - (T - U) / (1.0 - leverage - share).clamp(min=eps)[:, None]
    s = mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0)
    h, means = leverages + share, of_class - of_all / mu
    return torch.where(mu > CLASS_RATIO, (U - s * h * means) / (1.0 - h).clamp(min=eps), held)


def left_out_or_own(found: Discriminants, groups: Groups) -> Tensor:
    """Return the leave-one-out values, and the own ones of a row that is the only one of its class."""
    alone = groups.counts[groups.of_row] == 1
    return torch.where(alone[:, None], found.values, found.left_out)
