"""Self-expression by orthogonal matching pursuit (SSC-OMP), for all targets at once, from inner products alone."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from mercer.checks import check_count, check_number
from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.linalg import threads_for

# A correlation, or the squared part of an atom outside the span of those in use, counts as rounding if it is below
# this many rounding errors for each atom in use.
NOISE = 8.0


def matching_pursuit(
    K: Tensor,
    k: Tensor,
    norms: Tensor,
    own: Tensor | None = None,
    *,
    n_nonzero: int = 10,
    tolerance: float = 1e-6,
) -> Tensor:
    """Express each of b targets by at most s atoms of a dictionary Z, chosen greedily, from inner products alone.

    Each round adds the atom z_i with the largest |z_i^T r| / |z_i|, where r = x - Z c is the residual of the target x,
    and then computes the least-squares coefficients of all atoms chosen so far. A target is finished when
    |r|^2 <= tolerance |x|^2, or when no atom is correlated with r beyond rounding.

    Parameters
    ----------
    K : tensor of shape (m, m)
        Z^T Z, or a kernel matrix.
    k : tensor of shape (m, b)
        Z^T x for each target.
    norms : tensor of shape (b,)
        |x|^2.
    own : tensor of shape (b,), optional
        The number of the atom that a target itself is, which is never chosen; -1 if it is none.
    n_nonzero : int, default=10
        s.
    tolerance : float, default=1e-6
        The squared length of the residual at which a target is finished, as a share of |x|^2.

    Returns
    -------
    tensor of shape (m, b)

    Notes
    -----
    In each round, the Cholesky factor L of the Gram matrix of the chosen atoms S grows by one row, and so does
    a = L^-1 Z_S^T x. The coefficients are c_S = L^-T a, and |r|^2 = |x|^2 - |a|^2. These are always float64, since in
    float32 nearly equal atoms would leave them no correct digits. The time is O(s^3 + m s^2) for each target, and the
    memory O(b (m + s^2)). Only the rows of K that belong to chosen atoms are read.
    """
    m, b = k.shape
    s = min(n_nonzero, m)
    K = K.contiguous()
    noise = NOISE * torch.finfo(K.dtype).eps
    # Column m belongs to no atom. It is the own atom of targets that are not in the dictionary.
    q = pad(k.T, (0, 1))
    own = k.new_full((b,), m, dtype=torch.long) if own is None else torch.where(own >= 0, own, m)
    squares, norms = K.diagonal().double(), norms.double()
    scale = pad(torch.where(squares > 0, squares.rsqrt(), 0.0).to(K.dtype), (0, 1))

    C = torch.zeros_like(q)
    atoms, L, a = own.new_zeros(b, s), norms.new_zeros(b, s, s), norms.new_zeros(b, s)
    c, left = norms.new_zeros(b, s), norms.clone()
    live = torch.arange(b, device=k.device)
    for t in range(s):
        S = atoms[live, :t]
        g = q[live]
        if t:
            # A weighted sum of rows of K for each target, without a copy of the rows.
            g[:, :m] -= embedding_bag(S, K, per_sample_weights=c[live, :t].to(K.dtype), mode="sum")
        g = g.mul_(scale).abs_().scatter_(1, torch.cat([own[live, None], S], 1), 0.0)
        correlation, i = g.max(dim=1)
        (found,) = torch.nonzero(correlation > (t + 1) * noise * norms[live].sqrt(), as_tuple=True)
        live, i, S = live[found], i[found], S[found]

        # The squared length of the part of an atom outside the span of those before it is the square of its pivot.
        row = _forward(L[live, :t, :t], K[S, i[:, None]].double())
        pivot = squares[i] - row.square().sum(dim=1)
        (found,) = torch.nonzero(pivot > (t + 1) * noise * squares[i], as_tuple=True)
        live, i, row, pivot = live[found], i[found], row[found], pivot[found].sqrt()
        if not len(live):
            break
        atoms[live, t] = i
        L[live, t, :t], L[live, t, t] = row, pivot
        a[live, t] = (q[live, i].double() - (row * a[live, :t]).sum(dim=1)) / pivot
        c[live, : t + 1] = _backward(L[live, : t + 1, : t + 1], a[live, : t + 1])
        left[live] -= a[live, t].square()
        live = live[left[live] > tolerance * norms[live]]
    # Slots that were never filled have the first atom, with the coefficient 0.
    return C.scatter_add_(1, atoms, c.to(C.dtype))[:, :m].T


def _forward(L: Tensor, B: Tensor) -> Tensor:
    """Return L^-1 b for each row b of B."""
    return torch.linalg.solve_triangular(L, B[:, :, None], upper=False)[:, :, 0]


def _backward(L: Tensor, B: Tensor) -> Tensor:
    """Return L^-T b for each row b of B."""
    return torch.linalg.solve_triangular(L.mT, B[:, :, None], upper=True)[:, :, 0]


class MatchingPursuitExpression(SelfExpression):
    """Self-expression by orthogonal matching pursuit, with x left out of Z (SSC-OMP).

    The points that express x are chosen one after the other, each time the one most correlated with the residual of x
    (You, Robinson and Vidal 2016). Lengths of points do not affect the choice, since the authors scale points to
    length 1.

    Parameters
    ----------
    n_nonzero : int, default=10
        The largest number of coefficients. The authors advise the dimension of the subspaces.
    tolerance : float, default=1e-6
        The squared length of the residual, as a share of that of x, at which no more points are added.
    """

    is_sparse = True

    def __init__(self, n_nonzero: int = 10, tolerance: float = 1e-6) -> None:
        self.n_nonzero = n_nonzero
        self.tolerance = tolerance

    def solver(self, K: Tensor) -> Solver:
        n_nonzero = check_count("n_nonzero", self.n_nonzero)
        tolerance = check_number("tolerance", self.tolerance, at_least=0.0)

        def coefficients(k: Tensor, norms: Tensor, own: Tensor | None) -> Tensor:
            with threads_for(len(K)):
                return matching_pursuit(K, k, norms, own, n_nonzero=n_nonzero, tolerance=tolerance)

        return coefficients
