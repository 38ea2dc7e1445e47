"""Gradient steps as a solver: f(x) = W^T z + γ on kernel features z of views that are drawn for every batch."""

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.checks import check_choice, check_count, check_flag, check_number
from mercer.embedding.coordinates import Coordinates, all_features, drawn_features, kept_features
from mercer.embedding.gauss_newton_forms import gauss_newton_form
from mercer.embedding.neutral import judge_of, neutral_loss
from mercer.embedding.preconditioners import GaussNewton, White, check_preconditioner
from mercer.embedding.problem import Problem, Solution
from mercer.embedding.starts import STARTS, started, unit_scale
from mercer.embedding.trained_losses import (
    AUTOENCODER,
    CONSTRAINED,
    PrincipalObjective,
    make_objective,
)
from mercer.embedding.trained_map import LinearMap, TrainedMap
from mercer.exceptions import invalid_parameter
from mercer.linalg.threads import threads_for
from mercer.training import Cosine, Recipe, data_digest, fit_progress, train
from mercer.training.batches import count_batches
from mercer.training.settings import text_in_any_process
from mercer.training.values import check_optimizer
from mercer.views.sources import given_arrays

# epochs=None means EPOCHS, or as many epochs as make LEAST_STEPS steps.
EPOCHS, LEAST_STEPS = 20, 400
# At most this many bytes of features are kept in memory.
MOST_KEPT = 2**30
# Fewer left-out rows than this are too few to judge by, and more add nothing: their features are kept in memory.
LEAST_HELD_OUT, MOST_HELD_OUT = 8, 10_000


@dataclass(frozen=True)
class Steps:
    """Minimize any loss by gradient steps on batches of rows; to be used for losses without a closed form.

    Parameters
    ----------
    epochs : int or None, default=None
        Number of passes over the rows. None is 20, or as many as make 400 steps if there are few rows.
    batch_size : int, default=256
        Number of rows in a batch.
    optimizer : "adam", "sgd", Adam or SGD, default="adam"
        The optimizer. Objects set the learning rate: `mercer.training.Adam(1e-3)`, `mercer.training.SGD(0.5)`.
    schedule : Cosine
        The schedule of the learning rate: a warm-up of one epoch, then cosine annealing.
    preconditioner : "white", "identity", "kernel", "gauss_newton" or such a value, default="white"
        How steps are adapted to the scales of the directions. "white" makes steps in coordinates that whiten the
        landmarks, in which the norm of the parameters is that of the embedding in the kernel's space. "identity" makes
        steps in A itself. "kernel" multiplies the gradient by A with (K_mm + λ I)^-1. "gauss_newton" uses, in white
        coordinates, the curvature of "barlow_twins" or "simclr" (section 3.2). `mercer.embedding.preconditioners` has
        them as objects with parameters. A loss under a constraint requires "white".
    start : {"standardized", "principal", "random", "spectral"}, default="standardized"
        The initial parameters. "principal" takes the kernel principal components of the landmarks (section 3.1).
        "standardized" multiplies them, and Adam's learning rate, by one factor that makes their mean variance over the
        landmarks 1; other optimizers, constraints, kernel PCA and objectives with weights of their own use "principal"
        instead. "random" takes random numbers whose outputs have variance 1. "spectral" takes the exact optimum of the
        spectral contrastive loss.
    validation_fraction : float, default=0.1
        The share of the rows that are left out, at most 10 000 rows. Their loss decides which epoch is kept and when to
        stop. With 0.0 the training loss decides.
    guard : bool, default=True
        Whether to return to the start if the steps have not helped. This is decided on left-out rows by a criterion
        that favors no loss: how well the best linear head identifies rows by their views (`neutral_loss`).
    patience : int or None, default=None
        Stop after this many epochs in a row that have not lowered the loss on the left-out rows.
    redraw : bool or "auto", default="auto"
        Whether views are drawn anew for each epoch, or only once. Drawing once is some ten times faster, and keeps the
        kernel features of all views in memory: 4 n_views n m bytes in float32. "auto" draws once if these are below
        1 GiB.
    checkpoint : path or None, default=None
        A file that keeps the state of the training. A fit that was killed continues from there.
    """

    epochs: int | None = None
    batch_size: int = 256
    optimizer: Any = "adam"
    schedule: Cosine = Cosine()  # noqa: RUF009
    preconditioner: Any = "white"
    start: str = "standardized"
    validation_fraction: float = 0.1
    guard: bool = True
    patience: int | None = None
    redraw: Any = "auto"
    checkpoint: Any = None

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check_count("epochs", self.epochs)
        check_count("batch_size", self.batch_size)
        check_optimizer(self.optimizer)
        if not isinstance(self.schedule, Cosine):
            raise invalid_parameter("schedule", self.schedule, "a mercer.training.Cosine")
        check_preconditioner(self.preconditioner)
        check_choice("start", self.start, STARTS)
        if check_number("validation_fraction", self.validation_fraction, at_least=0.0) >= 1.0:
            raise invalid_parameter("validation_fraction", self.validation_fraction, "at least 0 and below 1")
        if self.patience is not None:
            check_count("patience", self.patience)
        check_flag("guard", self.guard)
        if self.redraw != "auto":
            check_flag("redraw", self.redraw)
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", os.fspath(self.checkpoint))

    def check(self, loss: Any) -> None:
        """Raise unless the loss can be minimized by steps with this preconditioner."""
        if isinstance(loss, str) and loss == AUTOENCODER:
            raise invalid_parameter("solver", self, f"'auto' or Alternate() for loss={loss!r}")
        preconditioner = check_preconditioner(self.preconditioner)
        if isinstance(preconditioner, GaussNewton):
            gauss_newton_form(loss)
        if isinstance(loss, str) and loss in CONSTRAINED and not isinstance(preconditioner, White):
            raise invalid_parameter(
                "preconditioner",
                self.preconditioner,
                f"'white' for loss={loss!r}",
                "Steps that keep A^T K_mm A = I are made in white coordinates, where it is W^T W = I.",
            )

    def recipe(self, n_batches: int, scale: float = 1.0) -> Recipe:
        """Return the settings for `mercer.training.train`, for this number of batches an epoch and scale of W."""
        optimizer = check_optimizer(self.optimizer)
        epochs = max(EPOCHS, -(-LEAST_STEPS // n_batches)) if self.epochs is None else self.epochs
        return Recipe(
            n_epochs=epochs,
            batch_size=self.batch_size,
            optimizer=optimizer.name,
            learning_rate=scale * optimizer.learning_rate,
            weight_decay=optimizer.weight_decay,
            momentum=optimizer.momentum,
            warmup_epochs=min(self.schedule.warmup_epochs, epochs),
            final_learning_rate=self.schedule.final * scale * optimizer.learning_rate,
            patience=self.patience,
        )

    def solve(self, problem: Problem, estimator: Any = None) -> Solution:
        """Minimize the loss plus λ Tr(A^T K_mm A), beginning at `start`.

        A step on a batch of b rows with p views costs O(b p r h) in addition to the loss, and O(b p m (d + r)) if views
        are drawn anew. Rows in files or on Dask are copied once into a temporary file, and steps are made locally.
        """
        with problem.source.at_hand() as source:
            return self._solve(problem._replace(source=source), estimator)

    def _solve(self, problem: Problem, estimator: Any) -> Solution:
        stats, halves = problem.halves.all_rows(), problem.halves
        like = problem.centers.like
        is_constrained = isinstance(problem.loss, str) and problem.loss in CONSTRAINED
        preconditioner = check_preconditioner(self.preconditioner)
        white = Coordinates(problem.centers, halves.B, halves.origin)
        space = white.raw() if preconditioner.is_raw else white
        ridge = 0.0 if problem.ridge == "auto" else float(problem.ridge)
        # The start: section 3.1.
        W, bias = started(self.start, problem, stats, is_constrained)
        # The loss of kernel PCA has no bias: the best one is the center of the rows.
        has_bias = problem.bias == "learned" and problem.loss != "kernel_pca"
        if isinstance(problem.loss, str) and problem.loss == "kernel_pca":
            objective: Any = PrincipalObjective(space, stats.diagonal)
        else:
            objective = make_objective(problem.loss, problem.n_components, seed=problem.seed)
        scale = unit_scale(problem, W) if self._may_scale(problem, objective) else 1.0
        W = scale * W
        model = LinearMap(space.from_white(W).to(like), bias.to(like) if has_bias else None)
        objective.to(like)
        objective.begin(model)
        seen, left_out = split_rows(problem.source.n_rows, self.validation_fraction, problem.seed)
        n_batches = count_batches(len(seen), self.batch_size, objective.min_batch)
        recipe = self.recipe(n_batches, scale)
        source = problem.source.of_rows(seen) if len(left_out) else problem.source
        held_out = all_features(space, problem.source.of_rows(left_out)) if len(left_out) else []
        module = TrainedMap(
            model,
            objective,
            (drawn_features if self._redraws(problem) else kept_features)(space, source),
            space,
            ridge=ridge,
            direction=preconditioner.direction(space, problem.loss, ridge),
            is_constrained=is_constrained,
            held_out=held_out,
            total_steps=recipe.n_epochs * n_batches,
            batch_size=recipe.batch_size,
        )
        with threads_for(recipe.batch_size), fit_progress(estimator, recipe.n_epochs) as progress:
            training = train(
                module,
                module.batch_loss,
                len(seen),
                recipe,
                seed=problem.seed,
                min_batch=objective.min_batch,
                precondition=module.precondition if module.direction is not None else None,
                after_step=module.after_step,
                validation=module.validation if held_out else None,
                progress=progress,
                checkpoint=self.checkpoint,
                settings=self._settings(problem),
                data="" if self.checkpoint is None else data_digest(*_arrays(problem)),
            )
        loss = min((record["criterion"] for record in training.history), default=float("nan"))
        trained = space.to_white(model.W.detach()).to(stats.mean)
        found = bias if model.bias is None else model.bias.detach().to(stats.mean)
        history: list[dict[str, Any]] = training.history
        if self.guard and len(held_out) > 1:
            # A criterion that is none of the losses decides between the start and the trained parameters.
            judge = judge_of(problem, white, seen, left_out)
            before, after = (neutral_loss(judge, V) for V in (W, trained))
            kept = "steps" if after < before else "start"
            history = [*history, {"neutral_loss_of_start": before, "neutral_loss_of_steps": after, "kept": kept}]
            if kept == "start":
                trained, found = W, bias
        eigenvalues = ((stats.second @ trained) * trained).sum(dim=0)
        return Solution(trained, found, eigenvalues, ridge, loss, history)

    def _may_scale(self, problem: Problem, objective: Any) -> bool:
        """Whether W may start at another scale, with Adam's learning rate scaled by the same factor.

        A loss that depends on directions only is unaffected. If an objective has other weights besides W, their rate
        would be wrong. Kernel PCA and constraints determine the scale, and other starts have a scale of their own.
        """
        of_scale = isinstance(problem.loss, str) and problem.loss in ("kernel_pca", *CONSTRAINED)
        is_adam = check_optimizer(self.optimizer).name == "adam"
        has_weights = next(objective.parameters(), None) is not None
        return self.start == "standardized" and is_adam and not of_scale and not has_weights

    def _redraws(self, problem: Problem) -> bool:
        """Whether views are drawn anew for each batch."""
        if self.redraw != "auto":
            return bool(self.redraw)
        like, n_views = problem.centers.like, len(problem.source.stacked(np.arange(1)))
        return n_views * problem.source.n_rows * len(like) * like.element_size() > MOST_KEPT

    def _settings(self, problem: Problem) -> dict[str, Any]:
        """Return what else the steps depend on: training continues from a checkpoint only if these are equal."""
        source = problem.source
        about = {
            "solver": replace(self, checkpoint=None),
            "loss": problem.loss,
            "kernel": problem.centers.kernel,
            "ridge": problem.ridge,
            "bias": problem.bias,
            "n_views": getattr(source, "n_views", None),
            "augment": getattr(getattr(source, "augmented", None), "augment", None),
            "sample_shape": getattr(getattr(source, "augmented", None), "shape", None),
        }
        return {name: text_in_any_process(value) for name, value in about.items()}


def split_rows(n: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and the rows left out, both in order; no row is left out if there are too few."""
    n_left_out = min(round(fraction * n), MOST_HELD_OUT)
    if n_left_out < LEAST_HELD_OUT or n - n_left_out < LEAST_HELD_OUT:
        return np.arange(n), np.arange(0)
    order = np.random.default_rng([seed, n]).permutation(n)
    return np.sort(order[n_left_out:]), np.sort(order[:n_left_out])


def _arrays(problem: Problem) -> list[np.ndarray]:
    return [*(Z.cpu().numpy() for Z in problem.centers.sets), *given_arrays(problem.source)]
