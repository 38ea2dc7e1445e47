"""Self-expression by orthogonal matching pursuit (SSC-OMP), for all targets at once and from inner products alone."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from mercer.checks import check_count, check_number
from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.linalg import threads_for

# Multiples of the rounding error, for each atom in use, below which a correlation or an atom's new part is noise.
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

    Each round takes the atom z_i with the largest |z_i^T r| / |z_i|, r = x - Z c the residual of the target x, and then
    finds the least-squares coefficients of all atoms taken. A target is done when |r|^2 <= tolerance |x|^2, or when no
    atom is correlated with r beyond rounding.

    Parameters
    ----------
    K : tensor of shape (m, m)
        Z^T Z, or a kernel matrix.
    k : tensor of shape (m, b)
        Z^T x for each target.
    norms : tensor of shape (b,)
        |x|^2.
    own : tensor of shape (b,), optional
        The atom that a target itself is, which is not taken; -1 for none.
    n_nonzero : int, default=10
        s.
    tolerance : float, default=1e-6

    Returns
    -------
    tensor of shape (m, b)

    Notes
    -----
    The Cholesky factor L of the Gram matrix of the atoms S grows by a row a round, and with it a = L^-1 Z_S^T x, so
    that c_S = L^-T a and |r|^2 = |x|^2 - |a|^2. These are float64 throughout: in float32, near-equal atoms would leave
    them without digits. O(s^3 + m s^2) time a target, O(b (m + s^2)) memory. Of K, the rows of atoms taken are read.
    """
    m, b = k.shape
    s = min(n_nonzero, m)
    K = K.contiguous()
    noise = NOISE * torch.finfo(K.dtype).eps
    # One more column, which is no atom's, for targets that are none.
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
            # A weighted sum of rows of K for each target: no copy of the rows is made.
            g[:, :m] -= embedding_bag(S, K, per_sample_weights=c[live, :t].to(K.dtype), mode="sum")
        g = g.mul_(scale).abs_().scatter_(1, torch.cat([own[live, None], S], 1), 0.0)
        correlation, i = g.max(dim=1)
        (found,) = torch.nonzero(correlation > (t + 1) * noise * norms[live].sqrt(), as_tuple=True)
        live, i, S = live[found], i[found], S[found]

        # What an atom has beside those taken before it is the square of its pivot.
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
    # Slots that were never filled name the first atom, with the coefficient 0.
    return C.scatter_add_(1, atoms, c.to(C.dtype))[:, :m].T


def _forward(L: Tensor, B: Tensor) -> Tensor:
    """Return L^-1 b for each row b of B."""
    return torch.linalg.solve_triangular(L, B[:, :, None], upper=False)[:, :, 0]


def _backward(L: Tensor, B: Tensor) -> Tensor:
    """Return L^-T b for each row b of B."""
    return torch.linalg.solve_triangular(L.mT, B[:, :, None], upper=True)[:, :, 0]


class MatchingPursuitExpression(SelfExpression):
    """c has at most n_nonzero coefficients, chosen by orthogonal matching pursuit, x left out of Z (SSC-OMP).

    You, Robinson and Vidal (2016): the points that express x are taken one by one, each time the one most correlated
    with what is left of x. Points count as if they were of length 1, which the authors make them.

    Parameters
    ----------
    n_nonzero : int, default=10
        The authors advise the dimension of the subspaces.
    tolerance : float, default=1e-6
        No more points are taken once the squared length of what is left of x is at most this share of x's own.
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
