"""The leave-one-out values of discriminants in closed form: the values of each row if it had not been in the fit."""

import torch
from torch import Tensor

from mercer.discriminant.groups import Discriminants, Groups, double_centered

# The largest error of leverages, relative to 1 - leverage, that is accepted to make them cheaper.
LEVERAGE_ERROR = 1e-3
# The change of leverages from one ridge to another is computed on at most LEVERAGE_ROWS rows. It is neglected if the
# ridges differ by less than the factor SAME_RIDGE.
LEVERAGE_ROWS = 1000
SAME_RIDGE = 1.05
# Components with a larger ratio separate classes. The others have no class means, and are principal components.
CLASS_RATIO = 1.0 + 1e-6


def own_means(U: Tensor, groups: Groups) -> tuple[Tensor, Tensor]:
    """Return P U, the mean of the class of each row, and the mean of all rows."""
    return groups.project(U), U.mean(dim=0)


def scores(U: Tensor, mu: Tensor, of_class: Tensor, of_all: Tensor) -> Tensor:
    """Return the scores t = C u / mu + P u, whose ridge regression on the rows is u.

    The means `of_class` and `of_all` are those of `own_means`.
    """
    return (U - of_all) / mu + of_class


def effective_ridges(ridge: float, mu: Tensor) -> Tensor:
    """Return the ridge mu / (mu - 1) ridge of the regression of each component on its class means.

    For a component with mu of at most 1, which has no class means, the ridge itself is returned.
    """
    return torch.where(mu > CLASS_RATIO, ridge * mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0), ridge)


def precision_of_leverages(A: Tensor, ridge: float) -> torch.dtype | None:
    """Return float32 if it is precise enough to invert the Cholesky factor of A + ridge I, and None otherwise.

    It is precise enough if the error of the leverages is at most a thousandth. The condition number of A + ridge I is
    at most 1 + trace A / ridge, and that of its factor is the square root of this.
    """
    condition = 1.0 + float(A.diagonal().sum()) / ridge
    return torch.float32 if torch.finfo(torch.float32).eps * condition**0.5 < LEVERAGE_ERROR else None


def leverages_of_components(
    K: Tensor, leverage: Tensor, ridge: float, mu: Tensor, regularizer: str, intercept: bool
) -> Tensor:
    """Return the leverages H_ii at the effective ridge of each component, of shape (n, k), given those at the ridge.

    For up to 1000 rows they are exact and follow from one eigendecomposition. For more rows, every n/1000-th row is
    used to estimate the mean change of the logit of a leverage from the one ridge to the other.
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
    """Return the leave-one-out values of the rows.

    A component with mu > 1 is s = mu / (mu - 1) times the ridge regression of its class means m = P u - mean(u) / mu
    with the effective ridge. For fixed m, the value of row i without this row is (u_i - s h_i m_i) / (1 - h_i), where
    h_i is its leverage at that ridge. For the other components the score t = C u / mu + P u is fixed, which gives
    t_i - (t_i - u_i) / (1 - H_ii). If there is an intercept, the mean of all rows adds 1/n to each leverage.

    Parameters
    ----------
    U : tensor of shape (n, k)
        The values of all rows of the fit, or of some of them.
    mu : tensor of shape (k,)
        The ratios of the components.
    of_class : tensor of shape (n, k)
        P u, the mean of the class of each row over all rows of the fit.
    of_all : tensor of shape (k,)
        The mean over all rows of the fit.
    leverage : tensor of shape (n,)
        The leverages H_ii at the ridge of the discriminants.
    leverages : tensor of shape (n, k)
        The leverages at the effective ridge of each component.
    share : float
        The leverage of a row in the mean: 1/n for n rows in the fit, or 0 if the features are not centered.

    Returns
    -------
    tensor of shape (n, k)
    """
    eps = torch.finfo(U.dtype).eps
    T = scores(U, mu, of_class, of_all)
    held = T - (T - U) / (1.0 - leverage - share).clamp(min=eps)[:, None]
    s = mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0)
    h, means = leverages + share, of_class - of_all / mu
    return torch.where(mu > CLASS_RATIO, (U - s * h * means) / (1.0 - h).clamp(min=eps), held)


def left_out_or_own(found: Discriminants, groups: Groups) -> Tensor:
    """Return the leave-one-out values, but the fitted values of a row that is the only one of its class."""
    alone = groups.counts[groups.of_row] == 1
    return torch.where(alone[:, None], found.values, found.left_out)
