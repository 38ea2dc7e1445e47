"""The doubly stochastic projection by entropy, Sinkhorn's scaling of exp(A); it is differentiable."""

import math
from typing import Any

import torch
from torch import Tensor

from mercer.blocks import as_tensor, like_input
from mercer.checks import check_count, check_number
from mercer.sinkhorn.dual import Linked, Solved, check_affinity, newton, warn_not_converged

# The most damped steps. Each one halves the spread of the logarithms of the row sums while that is large, so that these
# are enough for any sensible input.
DAMPED_STEPS = 64


def doubly_stochastic(
    log_affinity: Any, *, tolerance: float = 1e-6, max_iter: int = 100, symmetric: bool = True
) -> Any:
    """Scale an affinity to unit row and column sums: which P = diag(u) exp(A) diag(u) is doubly stochastic?

    P is the projection of exp(A) onto the doubly stochastic matrices in the Kullback-Leibler divergence. With
    A = S / eta, it is the doubly stochastic P with the largest <S, P> + eta * entropy(P). A large eta gives an even P,
    a small one a permutation or a mean of permutations. P is differentiable in A by the implicit function theorem, so
    that no iterates are stored.

    Parameters
    ----------
    log_affinity : tensor or array of shape (n, n)
        A. An entry of -inf means that there is no edge: P is zero there.
    tolerance : float, default=1e-6
        How far a row sum of P may be from 1.
    max_iter : int, default=100
        The most Newton steps, after the damped steps that bring P near the solution.
    symmetric : bool, default=True
        Whether A, and so P, is symmetric. If False, A may be any square matrix and P = diag(u) exp(A) diag(v). It is
        then found as one block of a symmetric problem of size 2n, of the rows and columns together.

    Returns
    -------
    P of shape (n, n), of the kind and precision of `log_affinity`

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached. If A has entries of -inf, there may be no solution: there is none unless a
        permutation exists that selects only finite entries.

    Notes
    -----
    Damped fixed point steps u <- sqrt(u / (exp(A) u)) in the log domain (Knight, Ruiz and Ucar, 2014) are taken until
    the row sums are of order 1. Newton steps on the dual in log u follow, each by conjugate gradients. O(n^2) time for
    each step and each product, and O(n^2) memory. The gradient takes one more solve, with I + P.

    For the cosine similarities of 1000 digits divided by eta = 0.175, there are 2 damped steps and 3 Newton steps with
    8 products, in place of 19 damped steps alone. Without the diagonal and with eta = 0.005 there are 5 and 9 steps,
    where 3000 damped steps leave an error of 5e-5. At eta = 0.175, value and gradient take 0.4 of the time of 20 damped
    steps and autograd, in float32.

    Examples
    --------
    >>> import torch
    >>> from mercer.sinkhorn import doubly_stochastic
    >>> doubly_stochastic(torch.tensor([[4.0, 1.0], [1.0, 1.0]]).log())
    tensor([[0.6667, 0.3333],
            [0.3333, 0.6667]])
    """
    tolerance, max_iter = check_number("tolerance", tolerance, above=0), check_count("max_iter", max_iter)
    A = check_affinity("log_affinity", as_tensor(log_affinity), symmetric=symmetric, missing=True)
    n = len(A)
    if not symmetric:
        none = torch.full_like(A, -math.inf)
        A = torch.cat([torch.cat([none, A], dim=1), torch.cat([A.T, none], dim=1)])
    with torch.no_grad():
        T, error, _ = newton(_damped(A), _exponential, tolerance, max_iter)
        if not error <= tolerance:
            # If there is no solution, Newton steps may end anywhere; damped steps bring the row sums back to order 1.
            T, error, _ = newton(_damped(T), _exponential, tolerance, 0)
    if not error <= tolerance:
        advice = "More iterations, or log-affinities divided by a larger temperature, would help"
        if symmetric and torch.isinf(A).any():
            advice += "; or no doubly stochastic matrix is zero wherever they are -inf"
        warn_not_converged("doubly_stochastic", max_iter, error, tolerance, f"{advice}.")
    P = Solved.apply(A, T, _exponential)
    return like_input(P if symmetric else P[:n, n:], log_affinity)


def _exponential(T: Tensor) -> Linked:
    """Return phi = exp with its derivatives: the sum of exp(T), and P = W = exp(T)."""
    P = T.exp()
    return Linked(P.sum(), P, P)


def _damped(A: Tensor) -> Tensor:
    """Return T = A + f 1^T + 1 f^T with exponentials of at most 1 and, if possible, row sums of order 1.

    A step takes the logarithms of the row sums from [a, b] into [(a - b) / 2, (b - a) / 2], and b is at most log n
    after the first step. So no row vanishes or overflows in the Newton steps that follow, whatever the spread of A.
    """
    f = torch.zeros_like(A[0])
    for _ in range(DAMPED_STEPS):
        sums = torch.logsumexp(A + f, dim=1)
        error = float((sums + f).abs().max())
        f = (f - sums) / 2.0
        if error < 1.0:
            break
    return A + (f[:, None] + f)
