"""Machines on landmarks: coefficients of m rows that represent the table are fitted by one pass over all rows."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.exceptions import ConvergenceWarning, warn_user
from mercer.kernels import Kernel
from mercer.landmarks import choose_landmarks
from mercer.rows import drawn_rows
from mercer.tabular_models.all_rows import Summed
from mercer.tabular_models.evidence import EvidenceTerms
from mercer.tabular_models.fitters import Fitter, LeftOut
from mercer.tabular_models.landmark_gradients import many_landmarks
from mercer.tabular_models.landmark_ridge import bound_terms, landmark_path, landmark_posterior_root, landmark_sums
from mercer.tabular_models.machine import Machine, packed_triangle
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate

# Landmarks are drawn from at most this many rows, or twice their number. It also bounds the number of left-out rows.
MOST_SAMPLED = 20_000
RIDGES = tuple(float(10.0**power) for power in np.arange(-7.0, 3.1, 0.5))
# With more than MOST_SUMMED landmarks, the coefficients are found by conjugate gradients and not from sums over the
# rows. The ridge and the errors of left-out rows are then those of SUMMED_OF_MANY landmarks.
MOST_SUMMED, SUMMED_OF_MANY = 4000, 2000


class Landmarks(NamedTuple):
    """How landmarks are chosen and used.

    Attributes
    ----------
    n_landmarks : int
    method : str
        The method of `mercer.landmarks.choose_landmarks`.
    seed : int
        The seed for the choice of landmarks. With the same seed, all kernels have the same landmarks, unless the method
        depends on the kernel.
    working_memory : float
    n_judged : int
        The largest number of rows whose leave-one-out predictions choose the ridge.
    rows : Summed or None
        The rows that sums are taken over, if there are more than in the table.
    """

    n_landmarks: int
    method: str
    seed: int
    working_memory: float
    n_judged: int = MOST_SAMPLED
    rows: Summed | None = None

    def summed(self, table: Table) -> Summed:
        """Return the rows that sums are taken over: those of the table unless there are more."""
        return Summed(table.X, table.y, table.weights) if self.rows is None else self.rows


class LandmarkFit(NamedTuple):
    """A machine on landmarks, with its left-out predictions and its evidence.

    Attributes
    ----------
    machine : Machine
    row_index : ndarray of shape (m,)
        The rows of the table that are landmarks.
    left_out : LeftOut
    evidence : EvidenceTerms
        The terms of the lower bound on the log evidence.
    judged : ndarray
        The rows of the table that `left_out` predicts.
    degrees_of_freedom : float
        The effective number of parameters: the sum of the leverages of the rows.
    """

    machine: Machine
    row_index: np.ndarray
    left_out: LeftOut
    evidence: EvidenceTerms
    judged: np.ndarray
    degrees_of_freedom: float


def landmark_machine(
    iterate: Iterate, warp: Any, table: Table, landmarks: Landmarks, fitter: Fitter, ridge: float | None
) -> LandmarkFit:
    """Fit a kernel on landmarks; a ridge of None is chosen by the scores of left-out rows.

    With up to `MOST_SUMMED` landmarks, one pass over the rows is enough for all ridges, and for variances if the fitter
    needs them. With more landmarks, the ridge and the left-out predictions are those of `SUMMED_OF_MANY` landmarks, and
    the coefficients are found by conjugate gradients. If these do not converge, the smaller machine is kept.

    O(n m (d + m)) time; in addition to the table, memory for one block of rows and O(m^2).
    """
    kernel, columns = iterate.kernel, table.columns(warp)
    random = np.random.RandomState(landmarks.seed)
    pool = drawn_rows(len(table), max(MOST_SAMPLED, 2 * landmarks.n_landmarks), random)
    judged = drawn_rows(len(table), landmarks.n_judged, random, among=pool)
    seen = table.take(judged)
    # Variances need the sums over all landmarks, however many these are.
    is_summed = fitter.needs_variances or landmarks.n_landmarks <= MOST_SUMMED
    few = landmarks if is_summed else landmarks._replace(n_landmarks=SUMMED_OF_MANY)
    index, Z = drawn_landmarks(kernel, warp, table, pool, few, random)
    X, y, weights = landmarks.summed(table)
    sums = landmark_sums(
        kernel,
        X,
        Z,
        y,
        weights,
        warp=columns.transform,
        working_memory=landmarks.working_memory,
    )
    ridges = [each for each in RIDGES if each >= fitter.smallest_ridge] if ridge is None else [ridge]
    solutions = landmark_path(
        sums,
        kernel,
        seen.warped(warp),
        Z,
        seen.y,
        ridges,
        seen.weights,
        working_memory=landmarks.working_memory,
    )
    left_out = [LeftOut.from_solution(solution, seen) for solution in solutions]
    scores = [float(np.average(fitter.row_scores(each), weights=each.weights)) for each in left_out]
    best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))
    alpha, chosen = solutions[best].alpha, ridges[best]
    root = landmark_posterior_root(sums, kernel, Z, chosen) if fitter.needs_variances else None
    if landmarks.n_landmarks > few.n_landmarks:
        many, alpha_of_many = by_conjugate_gradients(kernel, warp, table, pool, landmarks, chosen, random)
        if alpha_of_many is not None:
            index, alpha = many, alpha_of_many
    evidence = bound_terms(sums, chosen)
    machine = Machine(
        kernel,
        columns,
        table.X[index],
        alpha.cpu().numpy(),
        chosen,
        1.0,
        evidence.best_scales(),
        posterior_root=None if root is None else packed_triangle(root.to(torch.float32).cpu().numpy()),
    )
    return LandmarkFit(machine, index, left_out[best], evidence, judged, sums.degrees_of_freedom(chosen))


def drawn_landmarks(
    kernel: Kernel, warp: Any, table: Table, pool: np.ndarray, landmarks: Landmarks, random: np.random.RandomState
) -> tuple[np.ndarray, Tensor]:
    """Choose landmarks among the rows `pool` of a table; return their indices in the table, and these rows warped."""
    Z = table.take(pool).warped(warp)
    chosen = choose_landmarks(
        Z,
        landmarks.n_landmarks,
        landmarks.method,
        metric=kernel.common_metric(),
        kernel=kernel,
        random_state=random,
        working_memory=landmarks.working_memory,
    )
    return pool[chosen], Z[torch.from_numpy(chosen).to(Z.device)]


def by_conjugate_gradients(
    kernel: Kernel,
    warp: Any,
    table: Table,
    pool: np.ndarray,
    landmarks: Landmarks,
    ridge: float,
    random: np.random.RandomState,
) -> tuple[np.ndarray, Tensor | None]:
    """Return the indices of many landmarks, and their coefficients, or None if these did not converge."""
    index, Z = drawn_landmarks(kernel, warp, table, pool, landmarks, random)
    X, y, weights = landmarks.summed(table)
    solution = many_landmarks(
        kernel,
        X,
        Z,
        y,
        ridge,
        weights,
        warp=table.columns(warp).transform,
        working_memory=landmarks.working_memory,
    )
    if solution.converged:
        return index, solution.x
    warn_user(
        f"n_landmarks={landmarks.n_landmarks} are too many for {kernel!r} at a ridge of {ridge:.1e}: conjugate "
        f"gradients did not converge in {solution.steps} steps, and {SUMMED_OF_MANY} landmarks are used. A larger "
        "ridge or a rougher kernel ('laplace', 'matern32') avoids this.",
        ConvergenceWarning,
    )
    return index, None
