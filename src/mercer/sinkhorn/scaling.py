"""Scaling of a nonnegative symmetric matrix, dense or sparse, to row sums of 1."""

from typing import Any

import numpy as np
from scipy import sparse

from mercer.checks import ASYMMETRY, check_count, check_number
from mercer.exceptions import ConvergenceWarning, invalid_parameter, warn_user

# Entries below this share of the largest entry count as zero, so that no scale overflows.
SMALLEST = 1e-300


def balanced(affinity: Any, *, tolerance: float = 1e-6, max_iter: int = 1000) -> Any:
    """Scale a nonnegative symmetric affinity A to unit row sums: which D A D, D diagonal, is doubly stochastic?

    Parameters
    ----------
    affinity : array or scipy.sparse matrix of shape (n, n)
        A. Rows that are zero stay zero.
    tolerance : float, default=1e-6
        How far the sum of a row that is not zero may be from 1.
    max_iter : int, default=1000
        The most scalings; the time of each is proportional to the number of nonzero entries.

    Returns
    -------
    D A D of shape (n, n) in float64; sparse (CSR) if A is

    Warns
    -----
    ConvergenceWarning
        If a row sum is not 1; the warning names the worst row. D exists if and only if A has total support. The graph
        of a star has no total support: the rows of all leaves would have to put their sum of 1 on the one center, whose
        column may sum to only 1. A positive diagonal is enough for total support.

    Notes
    -----
    Rows and columns are divided by the square roots of the row sums until these are 1 (Ruiz, 2001). This is the damped
    step of `doubly_stochastic`. The weighted graphs of 3, 5 and 10 neighbors of 1797 digits take 868, 333 and 183
    scalings; with the identity added they take 18 or 19.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sinkhorn import balanced
    >>> balanced(np.array([[4.0, 1.0], [1.0, 1.0]])).round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """
    tolerance, max_iter = check_number("tolerance", tolerance, above=0), check_count("max_iter", max_iter)
    P = _checked(affinity)
    for step in range(max_iter + 1):
        sums = np.asarray(P.sum(axis=1)).ravel()
        errors = np.where(sums > 0, np.abs(sums - 1.0), 0.0)
        if errors.max() <= tolerance or step == max_iter:
            break
        scales = np.divide(1.0, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
        # The two scales are multiplied first, so that P stays symmetric to the last bit.
        if sparse.issparse(P):
            P.data *= np.repeat(scales, np.diff(P.indptr)) * scales[P.indices]
        else:
            P *= scales[:, None] * scales
    _warn_if_not_balanced(sums, errors, tolerance, max_iter)
    return P


def _checked(affinity: Any) -> Any:
    """Return a copy divided by its largest entry and symmetric to the last bit, as a float64 array or CSR matrix."""
    is_sparse = sparse.issparse(affinity)
    P: Any = affinity.tocsr().astype(np.float64) if is_sparse else np.array(affinity, dtype=np.float64)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or not P.shape[0]:
        raise invalid_parameter("affinity", P.shape, "a matrix of shape (n, n), n at least 1")
    entries = P.data if is_sparse else P
    wrong = ~(np.isfinite(entries) & (entries >= 0))
    if wrong.any():
        raise invalid_parameter("affinity", float(entries[wrong][0]), "finite and at least 0 throughout")
    largest = float(entries.max(initial=0.0)) or 1.0
    # In place: to divide a sparse matrix by a number, SciPy multiplies by its reciprocal, which may overflow.
    entries /= largest
    asymmetry = float(abs(P - P.T).max())
    if asymmetry > ASYMMETRY:
        differs = f"a matrix that differs from its transpose by {asymmetry * largest:g}"
        raise invalid_parameter("affinity", differs, "symmetric")
    P = (P + P.T) / 2.0
    entries = P.data if is_sparse else P
    entries[entries < SMALLEST] = 0.0
    return P


def _warn_if_not_balanced(sums: np.ndarray, errors: np.ndarray, tolerance: float, max_iter: int) -> None:
    """Give a ConvergenceWarning about the row sum that is farthest from 1, or about rows that are zero."""
    worst, n_zero = int(errors.argmax()), int((sums == 0).sum())
    if errors[worst] > tolerance:
        what = (
            f"max_iter={max_iter} scalings left row {worst} with a sum of {sums[worst]:.3g} in place of 1. More would "
            "help if the affinity has total support"
        )
    elif n_zero:
        what = f"{n_zero} of the {len(sums)} rows of the affinity are zero and stay zero"
    else:
        return
    warn_user(
        f"{what}; more neighbors, or a multiple of the identity added to it, give it total support.",
        ConvergenceWarning,
    )
