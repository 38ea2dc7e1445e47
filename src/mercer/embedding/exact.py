"""Exact optima as a solver: sums over rows, and one eigenproblem of the size of the landmarks."""

from dataclasses import dataclass
from typing import Any

import torch

from mercer.checks import check_choice
from mercer.embedding.choices import Choice, choose_ridge
from mercer.embedding.closed_forms import REGULARIZERS, Optimum
from mercer.embedding.objectives import CLOSED_FORMS, closed_form
from mercer.embedding.problem import Problem, Solution
from mercer.exceptions import invalid_parameter
from mercer.linalg import largest_eigenvalue, threads_for


@dataclass(frozen=True)
class Exact:
    """Minimize a loss that has a closed form: "spectral_contrastive", "simple_contrastive" or "kernel_pca".

    Parameters
    ----------
    regularizer : {"covariance", "tikhonov"}, default="covariance"
        The penalty of "spectral_contrastive": "tikhonov" adds λ Tr(A^T K_mm A) to the loss, and "covariance" adds
        λ K_mm to E[k k^T] in the loss. "kernel_pca" always uses Tikhonov's. "simple_contrastive" has a constraint
        and no penalty.
    """

    regularizer: str = "covariance"

    def __post_init__(self) -> None:
        check_choice("regularizer", self.regularizer, REGULARIZERS)

    def check(self, loss: Any) -> None:
        """Raise unless the loss has an exact optimum."""
        if not isinstance(loss, str) or loss not in CLOSED_FORMS:
            raise invalid_parameter("solver", self, f"'auto' or Steps() for loss={loss!r}, which has no exact optimum")

    def solve(self, problem: Problem, estimator: Any = None) -> Solution:
        """Return the optimum, at the given ridge or at the one that is best on left-out rows."""
        with threads_for(len(problem.halves.B)):
            return self._solve(problem)

    def _solve(self, problem: Problem) -> Solution:
        form = closed_form(problem.loss, self.regularizer)
        stats = problem.halves.all_rows()
        ridge = problem.ridge
        if ridge == "auto" and form.n_views > 1 and form.has_ridge and problem.share is not None:
            ridge = problem.share * largest_eigenvalue(stats.second)
            choice = Choice(ridge, float("nan"), [])
        else:
            choice = choose_ridge(form, problem.halves, ridge, problem.n_components, problem.centers.kernel)
        learned = problem.bias == "learned" and form.constant is not None
        (optimum,) = form.optima(stats, [choice.ridge], problem.n_components - learned)
        if learned:
            optimum = with_constant(optimum, form.constant)  # type: ignore[arg-type]
        loss = form.loss(stats, optimum.W, optimum.bias)
        return Solution(optimum.W, optimum.bias, optimum.eigenvalues, choice.ridge, loss, choice.tried)


def with_constant(optimum: Optimum, value: float) -> Optimum:
    """Return the optimum with an additional first component, which is constant.

    The constant 1 is a feature with mean square 1 on which all views agree. It is orthogonal to centered features. The
    optimum with a learned bias is therefore the centered optimum, preceded by this component.
    """
    W = torch.cat([torch.zeros_like(optimum.W[:, :1]), optimum.W], dim=1)
    first = torch.full_like(optimum.eigenvalues[:1], value)
    bias = torch.cat([first.sqrt(), torch.zeros_like(optimum.eigenvalues)])
    return Optimum(W, torch.cat([first, optimum.eigenvalues]), optimum.ridge, bias)
