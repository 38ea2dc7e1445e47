"""What the parameters of a kernel embedding may be."""

from typing import Any

from mercer.checks import check_bandwidth, check_choice, check_count, check_flag, check_number
from mercer.embedding.closed_forms import REGULARIZERS
from mercer.embedding.gauss_newton_forms import gauss_newton_form
from mercer.embedding.gradient import DEFAULT_RECIPES, GRADIENT_LOSSES, RAW, STARTS, views_needed
from mercer.embedding.objectives import LOSSES
from mercer.exceptions import invalid_parameter
from mercer.losses.objective import NEGATIVES
from mercer.training import check_recipe

SOLVERS = ("auto", "exact", "gradient")


def is_exact(embedding: Any) -> bool:
    """Whether the loss of an embedding is minimised exactly."""
    has_optimum = isinstance(embedding.loss, str) and embedding.loss in LOSSES
    return embedding.solver == "exact" or (embedding.solver == "auto" and has_optimum)


def check_parameters(embedding: Any, n_given: int | None = None) -> None:
    """Raise if a parameter is not what it may be; `n_given` is the number of views that were given, if any were."""
    _check_training(embedding)
    check_choice("regularizer", embedding.regularizer, REGULARIZERS)
    if embedding._is_precomputed():
        raise invalid_parameter(
            "kernel", embedding.kernel, "a kernel of rows: views of a kernel matrix cannot be drawn"
        )
    embedding._check_landmark_parameters()
    if embedding.n_components is not None:
        check_count("n_components", embedding.n_components)
    if embedding.ridge != "auto":
        check_number("ridge", embedding.ridge, at_least=0.0)
    for name in ("center", "landmark_tuples", "redraw"):
        check_flag(name, getattr(embedding, name))
    check_bandwidth(embedding.bandwidth)
    _check_views(embedding, n_given)


def _check_training(embedding: Any) -> None:
    loss = embedding.loss
    if not callable(loss):
        check_choice("loss", loss, (*LOSSES, *[name for name in GRADIENT_LOSSES if name not in LOSSES]))
    check_choice("solver", embedding.solver, SOLVERS)
    if embedding.solver == "exact" and (not isinstance(loss, str) or loss not in LOSSES):
        raise invalid_parameter(
            "solver", "exact", f"'auto' or 'gradient' for loss={loss!r}, which has no exact optimum"
        )
    check_choice("start", embedding.start, STARTS)
    check_choice("negatives", embedding.negatives, NEGATIVES)
    _check_preconditioner(embedding)
    check_recipe("recipe", embedding.recipe)


def _check_preconditioner(embedding: Any) -> None:
    name = check_choice("preconditioner", embedding.preconditioner, tuple(DEFAULT_RECIPES))
    if name == "gauss_newton":
        gauss_newton_form(embedding.loss)
    if name in RAW and embedding.loss == "kernel_autoencoder":
        raise invalid_parameter(
            "preconditioner",
            name,
            "'whitening' for loss='kernel_autoencoder'",
            "What it reconstructs are features in white coordinates, whose distances are the kernel's.",
        )


def _check_views(embedding: Any, n_given: int | None) -> None:
    needed = views_needed(embedding.loss)
    if n_given is not None and n_given < needed:
        raise ValueError(
            f"fit_views() got {n_given} views: loss={embedding.loss!r} needs {needed} or more of one shape."
        )
    check_count("n_views", embedding.n_views, at_least=needed if n_given is None else 1)
    if n_given is None and needed > 1 and embedding.augment is None:
        raise invalid_parameter(
            "augment",
            None,
            f"a view, or 'auto', if loss={embedding.loss!r}",
            "fit_views() takes views that are there.",
        )
