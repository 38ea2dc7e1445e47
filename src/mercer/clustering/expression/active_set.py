"""Lasso and elastic-net problems that share a Gram matrix, solved together and exactly by an active-set method."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from mercer.blocks import rows_per_block
from mercer.exceptions import ConvergenceWarning, NumericalError, warn_user

# The number of atoms that may enter a support at once: this many, or this share of its size if that is more. One at a
# time takes twice as many steps on faces. More than a few in the first steps are alike, and most of them leave again.
ENTERING, ENTERING_SHARE = 4, 0.25
# MiB for the small systems that are solved together. They are of similar size, and fit into the cache.
SOLVE_MEMORY = 4.0
# The largest jitter, relative to the diagonal of a system. Jitter is multiplied by ten until the system is positive
# definite; beyond this value an error is raised.
MAX_JITTER = 1e-3


class _Problems(NamedTuple):
    """The problems min_c 1/2 c^T K c - q^T c + l1 |c|_1 + l2/2 |c|^2, one for each row q.

    Atoms have the numbers 0 to m - 1; the number m stands for "no atom".
    """

    K: Tensor
    q: Tensor
    own: Tensor
    l1: Tensor
    l2: Tensor


class _Supports(NamedTuple):
    """The atoms in use for each target, one per slot; a free slot has the atom m, the coefficient 0 and the sign 0."""

    atoms: Tensor
    c: Tensor
    signs: Tensor

    def of(self, rows: Tensor, width: int | None = None) -> "_Supports":
        return _Supports(*(values[rows, :width] for values in self))

    def with_atoms(self, atoms: Tensor, signs: Tensor, m: int) -> "_Supports":
        """Add atoms with a coefficient of zero, move free slots to the end, and drop those that no target needs."""
        atoms, signs = torch.cat([self.atoms, atoms], 1), torch.cat([self.signs, signs], 1)
        c = pad(self.c, (0, atoms.shape[1] - self.c.shape[1]))
        width = max(1, int((atoms < m).sum(dim=1).max()))
        slots = (atoms == m).byte().argsort(dim=1, stable=True)[:, :width]
        return _Supports(*(values.gather(1, slots) for values in (atoms, c, signs)))


def elastic_net(
    K: Tensor,
    k: Tensor,
    own: Tensor | None = None,
    *,
    strength: float,
    l1_ratio: float,
    tolerance: float,
    max_iter: int,
) -> Tensor:
    """Return the elastic-net coefficients of b targets in a dictionary Z of m atoms, from inner products alone.

    Solves min_c l1_ratio |c|_1 + (1 - l1_ratio)/2 |c|^2 + gamma/2 |x - Z c|^2 with c_own = 0 for each target x, where
    gamma = strength l1_ratio / max_{i != own} |z_i^T x|. All coefficients are zero for strengths up to 1.

    Parameters
    ----------
    K : tensor of shape (m, m)
        Z^T Z, or a kernel matrix.
    k : tensor of shape (m, b)
        Z^T x for each target.
    own : tensor of shape (b,), optional
        The number of the atom that a target itself is, or -1 if it is none.
    strength : float
        Above 1.
    l1_ratio : float
        Above 0; 1 is the lasso.
    tolerance : float
        The largest |z_i^T r| outside the support may exceed its bound l1_ratio / gamma by this share. The objective is
        then at most this share above its minimum.
    max_iter : int
        The largest number of steps; a ConvergenceWarning says how many targets are not solved by then.

    Returns
    -------
    tensor of shape (m, b)

    Notes
    -----
    This is Lawson and Hanson's active-set method, except that several atoms may enter at a time. For a given support
    with fixed signs, the problem is a small linear system. Atoms whose coefficients reach zero on the way to its
    solution leave the support: all of them if that lowers the objective, otherwise only the first, and the step ends
    there. After a step in which no atom leaves, the atoms that most violate |z_i^T r| <= l1_ratio / gamma enter, where
    r is the residual. The objective is lower after each such step, so no support occurs twice and the result is exact.

    For a support of s atoms the time is O(s^3 + m s) for each step and target, in about s steps; the memory is O(b m).
    Only the rows of K that belong to the support are read.
    """
    m, b = k.shape
    own = k.new_full((b,), m, dtype=torch.long) if own is None else torch.where(own >= 0, own, m)
    q = pad(k.T, (0, 1)).scatter_(1, own[:, None], 0.0)
    l1 = q.abs().amax(dim=1).double() / strength
    problems = _Problems(K.contiguous(), q, own, l1, l1 * (1.0 - l1_ratio) / l1_ratio)
    C = torch.zeros_like(q)

    live = torch.arange(b, device=k.device)
    supports = _Supports(own.new_full((b, 1), m), l1.new_zeros(b, 1), l1.new_zeros(b, 1))
    settled, value, least = torch.ones_like(l1, dtype=torch.bool), torch.zeros_like(l1), torch.full_like(l1, torch.inf)
    for step in range(max_iter + 1):
        atoms, signs = _violators(problems, live, supports, settled, tolerance)
        # If the objective no longer falls, atoms violate the bound only by rounding.
        finished = settled & ((atoms == m).all(dim=1) | (value >= least))
        C[live[finished, None], supports.atoms[finished]] = supports.c[finished].to(C.dtype)
        least = torch.where(settled, value, least)
        (rest,) = torch.nonzero(~finished, as_tuple=True)
        live, least, supports = live[rest], least[rest], supports.of(rest)
        if not len(live) or step == max_iter:
            break
        supports = supports.with_atoms(atoms[rest], signs[rest], m)
        supports, settled, value = _step_by_size(problems, live, supports, tolerance)

    if len(live):
        C[live[:, None], supports.atoms] = supports.c.to(C.dtype)
        warn_user(
            f"{len(live)} of {b} targets did not reach tolerance={tolerance:g} in max_iter={max_iter} steps. A smaller "
            f"strength than {strength:g} makes fewer coefficients; a larger max_iter or tolerance, or float64, would "
            "also help.",
            ConvergenceWarning,
        )
    return C[:, :m].T


def _violators(
    problems: _Problems, live: Tensor, supports: _Supports, settled: Tensor, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Return the atoms that should enter the supports whose step was complete, and their signs, worst first.

    If |z_i^T r| <= (1 + tolerance) l1 for all atoms, r / (1 + tolerance) is feasible for the dual problem, and the
    duality gap is at most tolerance times the objective.

    Returns
    -------
    entering : tensor of shape (number of live targets, number of slots)
        Free slots have the atom m.
    signs : tensor of the same shape
    """
    m = len(problems.K)
    (rows,) = torch.nonzero(settled, as_tuple=True)
    targets, supports = live[rows], supports.of(rows)
    g = problems.q[targets]
    # A weighted sum of rows of K for each target, without products with zeros of c and without copies of the rows.
    g[:, :m] -= embedding_bag(
        supports.atoms.clamp(max=m - 1), problems.K, per_sample_weights=supports.c.to(g.dtype), mode="sum"
    )
    outside = g.abs().scatter_(1, torch.cat([problems.own[targets, None], supports.atoms], 1), 0.0)
    limit = ((supports.atoms < m).sum(dim=1) * ENTERING_SHARE).long().clamp(min=ENTERING)
    size, atoms = outside.topk(min(m, int(limit.max())) if len(rows) else 0, dim=1)
    enters = size > (1.0 + tolerance) * problems.l1[targets, None]
    enters &= torch.arange(size.shape[1], device=size.device) < limit[:, None]

    entering = atoms.new_full((len(settled), size.shape[1]), m)
    signs = supports.c.new_zeros(entering.shape)
    entering[rows] = torch.where(enters, atoms, m)
    signs[rows] = torch.where(enters, g.gather(1, atoms).sign(), 0.0).to(signs.dtype)
    return entering, signs


def _step_by_size(
    problems: _Problems, live: Tensor, supports: _Supports, tolerance: float
) -> tuple[_Supports, Tensor, Tensor]:
    """Take one step for every target; targets with supports of similar size are solved together."""
    result = _Supports(*(values.clone() for values in supports))
    settled, value = torch.empty_like(live, dtype=torch.bool), torch.empty_like(problems.l1[live])
    sizes, order = (supports.atoms < len(problems.K)).sum(dim=1).sort(descending=True)
    start = 0
    while start < len(order):
        width = max(1, int(sizes[start]))
        rows = order[start : start + rows_per_block(len(order), 4 * 8 * width**2, SOLVE_MEMORY)]
        moved, settled[rows], value[rows] = _step(problems, live[rows], supports.of(rows, width), tolerance)
        for values, new in zip(result, moved, strict=True):
            values[rows, :width] = new
        start += len(rows)
    return result, settled, value


def _step(
    problems: _Problems, targets: Tensor, supports: _Supports, tolerance: float
) -> tuple[_Supports, Tensor, Tensor]:
    """Move to the minimum on the support with its signs fixed, or as far as the signs allow.

    Returns the supports without the atoms that left, whether the minimum was reached, and the objective minus
    |x|^2 / 2, which is valid only if it was. All of this is in float64, since in float32 the systems of nearly equal
    atoms would have no correct digits.
    """
    K, l1, l2 = problems.K, problems.l1[targets], problems.l2[targets]
    atoms, c, signs = supports
    used = atoms < len(K)
    i = atoms.clamp(max=len(K) - 1)
    pairs = (i[:, :, None] * len(K) + i[:, None, :]).flatten()
    A = K.flatten().index_select(0, pairs).reshape(*i.shape, -1).double()
    A.mul_(used[:, :, None])  # only the lower triangle is factorized, and free slots come last
    A.diagonal(dim1=1, dim2=2).add_(torch.where(used, l2[:, None], 1.0))

    # Jitter is used for the step only: it allows linearly dependent atoms, and does not change the final solution.
    b = problems.q[targets[:, None], atoms].double() - l1[:, None] * signs
    lower, jitter = _factor(A, 2 * torch.finfo(K.dtype).eps * used.sum(dim=1).double())
    Ac = _product(A, c)
    d = torch.cholesky_solve((b - Ac)[:, :, None], lower)[:, :, 0]
    meets_zero = used & ((c + d) * signs <= 0)

    # The longer step sets all coefficients that reach zero to zero. It is taken if it lowers the objective.
    whole = torch.where(meets_zero, 0.0, c + d)
    value = (whole * (0.5 * _product(A, whole) - b)).sum(dim=1)
    falls = (value < (c * (0.5 * Ac - b)).sum(dim=1))[:, None]
    # The shorter step ends where the first coefficient reaches zero. It has length zero if an atom that has just
    # entered must leave again.
    share = torch.where(meets_zero, torch.where(c != 0, -c / d, 0.0), 1.0)
    part = c + share.amin(dim=1, keepdim=True) * d
    leaves = meets_zero & (falls | (share <= share.amin(dim=1, keepdim=True)))
    c = torch.where(falls, whole, torch.where(leaves, 0.0, part))

    settled = ~meets_zero.any(dim=1) & ((jitter * d).abs().amax(dim=1) <= tolerance * l1)
    return _Supports(torch.where(leaves, len(K), atoms), c, torch.where(leaves, 0.0, signs)), settled, value


def _product(A: Tensor, c: Tensor) -> Tensor:
    """Return A c for each target."""
    return (A @ c[:, :, None])[:, :, 0]


def _factor(A: Tensor, relative: Tensor) -> tuple[Tensor, Tensor]:
    """Return Cholesky factors of A + diag(jitter), and the jitter, which grows until systems are positive definite.

    The jitter is relative to each entry of the diagonal, so that long atoms do not add much to short ones.
    """
    while True:
        jitter = relative[:, None] * A.diagonal(dim1=1, dim2=2)
        shifted = A.clone()
        shifted.diagonal(dim1=1, dim2=2).add_(jitter)
        lower, failed = torch.linalg.cholesky_ex(shifted)
        if not failed.any():
            return lower, jitter
        relative = torch.where(failed > 0, 10.0 * relative, relative)
        if relative.max() > MAX_JITTER:
            raise NumericalError(
                f"a block of {A.shape[1]} atoms of the Gram matrix is not positive semi-definite, nor with "
                f"{MAX_JITTER:g} of its diagonal added: an indefinite kernel cannot be used here."
            )
