"""The checks of the parameters of a kernel embedding, and the solver that they select."""

from typing import Any

from mercer.checks import check_bandwidth, check_choice, check_count, check_number
from mercer.embedding.alternate import Alternate
from mercer.embedding.centers import TUPLES
from mercer.embedding.exact import Exact
from mercer.embedding.objectives import CLOSED_FORMS
from mercer.embedding.problem import BIASES
from mercer.embedding.steps import Steps
from mercer.embedding.trained_losses import AUTOENCODER, GRADIENT_LOSSES, views_needed
from mercer.exceptions import invalid_parameter

LOSSES = (*CLOSED_FORMS, *[name for name in GRADIENT_LOSSES if name not in CLOSED_FORMS], AUTOENCODER)


def reconstructs(embedding: Any) -> bool:
    """Whether rows can be reconstructed from their embeddings."""
    return isinstance(embedding.loss, str) and embedding.loss == AUTOENCODER


def solver_of(embedding: Any) -> Exact | Steps | Alternate:
    """Return the solver of an embedding: the one that was given, or the one that suits its loss."""
    if isinstance(embedding.solver, (Exact, Steps, Alternate)):
        return embedding.solver
    if reconstructs(embedding):
        return Alternate()
    return Exact() if isinstance(embedding.loss, str) and embedding.loss in CLOSED_FORMS else Steps()


def check_parameters(embedding: Any, n_given: int | None = None) -> None:
    """Raise if a parameter is invalid; `n_given` is the number of views that `fit_views` received, or None."""
    loss, solver = embedding.loss, embedding.solver
    if not callable(loss):
        check_choice("loss", loss, LOSSES)
    if not isinstance(solver, (Exact, Steps, Alternate)) and not (isinstance(solver, str) and solver == "auto"):
        raise invalid_parameter("solver", solver, "'auto', or Exact(), Steps() or Alternate() of mercer.embedding")
    solver_of(embedding).check(loss)
    if embedding._is_precomputed():
        raise invalid_parameter(
            "kernel", embedding.kernel, "a kernel of rows: views of a kernel matrix cannot be drawn"
        )
    embedding._check_landmark_parameters()
    if embedding.n_components is not None:
        check_count("n_components", embedding.n_components)
    if embedding.ridge != "auto":
        check_number("ridge", embedding.ridge, at_least=0.0)
    check_choice("bias", embedding.bias, BIASES)
    check_choice("landmark_tuples", embedding.landmark_tuples, TUPLES)
    check_bandwidth(embedding.bandwidth)
    _check_views(embedding, n_given)


def _check_views(embedding: Any, n_given: int | None) -> None:
    """Raise if the loss needs other views than are drawn or given."""
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
    if embedding.landmark_tuples != "shared" and needed == 1 and n_given is None:
        raise invalid_parameter(
            "landmark_tuples", embedding.landmark_tuples, f"'shared' for loss={embedding.loss!r}, which draws no views"
        )
