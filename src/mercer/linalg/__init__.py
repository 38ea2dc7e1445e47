"""Factorizations, solvers and distances: plain functions of tensors that know no kernel."""

from mercer.linalg.cholesky import CholeskyFactor, cholesky, inverted, solve_refined
from mercer.linalg.conjugate_gradients import Solution, conjugate_gradients
from mercer.linalg.distances import squared_distances, squared_norms
from mercer.linalg.eigen import (
    EigenPairs,
    block_krylov_eigenpairs,
    generalized_eigenpairs,
    inverse_root,
    lanczos_eigenpairs,
    largest_eigenvalue,
    top_eigenpairs,
)
from mercer.linalg.gram import gram
from mercer.linalg.leave_one_out import RidgeSolution, ridge_leave_one_out, ridge_path
from mercer.linalg.span import in_row_span
from mercer.linalg.threads import in_parallel, one_thread, threads_for, threads_on

__all__ = [
    "CholeskyFactor",
    "EigenPairs",
    "RidgeSolution",
    "Solution",
    "block_krylov_eigenpairs",
    "cholesky",
    "conjugate_gradients",
    "generalized_eigenpairs",
    "gram",
    "inverted",
    "inverse_root",
    "lanczos_eigenpairs",
    "largest_eigenvalue",
    "ridge_leave_one_out",
    "ridge_path",
    "solve_refined",
    "squared_distances",
    "squared_norms",
    "threads_for",
    "threads_on",
    "in_parallel",
    "in_row_span",
    "one_thread",
    "top_eigenpairs",
]
