"""Coding rates: the number of nats needed to code features up to a precision, all together or class by class."""

import math

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.exceptions import NumericalWarning, invalid_parameter, warn_user
from mercer.losses.log_determinants import gram_log_determinant, weighted_log_determinants

# The largest trace of sum_i w_i w_i^T for which adding I is still accurate. The rounding error of the sum is a few
# units times its trace, and is also an error of the log determinant. The limit of float32 is far below the trace at
# which the error shows, and the limit of float64 is below the trace at which the factorization fails.
LARGEST_TRACE = {torch.float32: 2.0**14, torch.float64: 2.0**44}
# Memberships down to minus this number are rounding errors and count as zero.
ROUNDING = 1e-5
# A class with a smaller size than this (in samples) counts as empty: dividing by its size could overflow.
EMPTY = 1e-20


def coding_rate(Z: Tensor, *, epsilon: float) -> Tensor:
    """How long is the code of the features, up to a precision ε? Return R = log det(I + d / (n ε^2) Z^T Z).

    It is large for features that spread over many directions. As in the paper of manifold linearizing and clustering,
    it is twice the rate of Ma et al. (2007), in nats. Public implementations of MCR2 use half of it.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features, one row for each sample. Precisions below float32 are converted to float32.
    epsilon : float
        ε. Public implementations call its square eps.

    Returns
    -------
    R, a scalar, with a gradient in Z

    Warns
    -----
    NumericalWarning
        If ε is below the rounding error of features of this length. R would then be meaningless. ε is raised to a value
        at which float64 can distinguish I from zero, and this value counts as a constant in the gradient.

    Notes
    -----
    O(n d q + q^3) time with q = min(n, d). float32 features longer than 128 ε / sqrt(d) are converted to float64.

    Examples
    --------
    >>> import torch
    >>> from mercer.losses import coding_rate
    >>> coding_rate(torch.eye(2), epsilon=1.0)  # log det(2 I)
    tensor(1.3863)
    """
    W = over_precision(Z, epsilon)
    return gram_log_determinant(W / math.sqrt(len(W))).to(_precision(Z))


def class_coding_rate(Z: Tensor, membership: Tensor, *, epsilon: float) -> Tensor:
    """How long is the code if each class has its own? Return R_c, the mean of the classes' rates over samples.

    R_c = sum_j (t_j / n) log det(I + d / (t_j ε^2) Z^T Diag(Π_j) Z), where Π_j is column j of the membership and
    t_j = <Π_j, 1> (equation 1 of the paper). It is at most R if the rows of Π sum to 1, and equals R if every Π_j is
    constant.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features, as in `coding_rate`.
    membership : tensor of shape (n,) of whole numbers, or (n, k)
        The class of each sample; or Π, the nonnegative share of each class in each sample. A class without samples adds
        nothing to R_c or to its gradient.
    epsilon : float
        ε, as in `coding_rate`.

    Returns
    -------
    R_c, a scalar, with a gradient in Z and in Π

    Warns
    -----
    NumericalWarning
        As in `coding_rate`.

    Notes
    -----
    O(n d^2 + k d^3) time for classes, O(k n q^2 + k q^3) with q = min(n, d) for shares.
    """
    W = over_precision(Z, epsilon)
    n = len(W)
    membership = torch.as_tensor(membership, device=Z.device)
    if membership.ndim == 1:
        return _rate_of_labels(W, _checked_labels(membership, n)).to(_precision(Z))
    shares = _checked_shares(membership, n, None).to(W.dtype)
    t = shares.sum(dim=0)
    return weighted_log_determinants(W, shares / torch.where(t > EMPTY, t, 1.0), t / n).to(_precision(Z))


def pairwise_coding_rate(Z: Tensor, membership: Tensor, *, epsilon: float) -> Tensor:
    """How long is the code if each point is coded with the points like it? Return R_c for a matrix of memberships.

    R_c = (1 / n) sum_j log det(I + d / ε^2 Z^T Diag(Π_j) Z), where Π_j is column j of the membership (equation 4 of the
    paper). It is `class_coding_rate` with one class around each point, each of the size of one point. It is at most R
    if Π is doubly stochastic. It equals R if Π = 1 1^T / n, and the mean of log(1 + d |z_j|^2 / ε^2) if Π = I.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features, as in `coding_rate`.
    membership : tensor of shape (n, n)
        Π, a nonnegative and doubly stochastic matrix, such as the result of `mercer.sinkhorn.doubly_stochastic`. Its
        columns are used as they are, without scaling.
    epsilon : float
        ε, as in `coding_rate`.

    Returns
    -------
    R_c, a scalar, with a gradient in Z and in Π

    Warns
    -----
    NumericalWarning
        As in `coding_rate`.

    Notes
    -----
    O(n^2 q^2 + n q^3) time with q = min(n, d), and O(n^2) memory in addition to blocks of 64 MiB.
    """
    n = len(Z)
    shares = _checked_shares(torch.as_tensor(membership, device=Z.device), n, n)
    W = over_precision(Z, epsilon, mass=float(shares.detach().sum(dim=0).max()))
    s = W.new_full((n,), 1.0 / n)
    return weighted_log_determinants(W, shares.to(W.dtype), s).to(_precision(Z))


def _rate_of_labels(W: Tensor, labels: Tensor) -> Tensor:
    parts = [W[labels == label] for label in labels.unique()]
    rates = [len(part) / len(W) * gram_log_determinant(part / math.sqrt(len(part))) for part in parts]
    return torch.stack(rates).sum()


def over_precision(Z: Tensor, epsilon: float, mass: float = 1.0) -> Tensor:
    """Return W = sqrt(d) / ε Z in float32 or float64, as needed to compute I plus a weighted sum of w_i w_i^T.

    `mass` is the largest sum of weights. The trace of the weighted sum is at most mass d / ε^2 max_i |z_i|^2.
    """
    epsilon = check_number("epsilon", epsilon, above=0.0)
    if Z.ndim != 2 or not Z.numel() or not Z.is_floating_point():
        raise invalid_parameter("Z", f"{Z.dtype} of shape {tuple(Z.shape)}", "floats of shape (n, d), n and d not 0")
    largest = float(Z.detach().abs().max())
    if not math.isfinite(largest):
        raise invalid_parameter("Z", largest, "finite throughout")
    Z = Z.to(_precision(Z))
    # The entries are divided by the largest one, since their squares might overflow or vanish.
    longest = largest * float(torch.linalg.vector_norm(Z.detach() / (largest or 1.0), dim=1).max())
    if not longest:
        return Z
    factor = math.sqrt(Z.shape[1]) / epsilon
    root = math.sqrt(max(mass, 1.0)) * longest
    if factor * root > math.sqrt(LARGEST_TRACE[Z.dtype]):
        Z = Z.to(torch.float64)
    most = math.sqrt(LARGEST_TRACE[torch.float64])
    if factor * root > most:
        warn_user(
            f"epsilon={epsilon:g} is below the rounding error of features of length {longest:.1e}: "
            f"{math.sqrt(Z.shape[1]) * root / most:.1e} is used instead. Features of length 1 avoid this.",
            NumericalWarning,
        )
        factor = most / root
    return Z * factor


def _precision(Z: Tensor) -> torch.dtype:
    return torch.promote_types(Z.dtype, torch.float32)


def _checked_labels(labels: Tensor, n: int) -> Tensor:
    if len(labels) != n:
        raise invalid_parameter("membership", tuple(labels.shape), f"of shape ({n},), a class for each row of Z")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise invalid_parameter("membership", labels.dtype, "whole numbers, or of shape (n, k)")
    if bool((labels < 0).any()):
        raise invalid_parameter("membership", int(labels.min()), "classes from 0 on")
    return labels


def _checked_shares(membership: Tensor, n: int, m: int | None) -> Tensor:
    """Return Π of shape (n, m), or (n, any) if m is None, with small negative entries set to zero."""
    fits = membership.ndim == 2 and len(membership) == n and membership.shape[1] == (m or max(1, membership.shape[1]))
    if not fits or not membership.is_floating_point():
        found = f"{membership.dtype} of shape {tuple(membership.shape)}"
        allowed = f"floats of shape ({n}, {m or 'k'}), a row for each row of Z"
        raise invalid_parameter("membership", found, allowed)
    values = membership.detach()
    wrong = ~torch.isfinite(values) | (values < -ROUNDING)
    if bool(wrong.any()):
        raise invalid_parameter("membership", float(values[wrong][0]), "finite and not negative throughout")
    # clamp has a gradient at zero itself, unlike relu.
    return membership.clamp(min=0.0)
