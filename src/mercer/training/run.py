"""A running training: its steps and epochs, early stopping, the handling of NaN, and resuming from a checkpoint."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mercer.exceptions import ConvergenceWarning, ModelFileError, NumericalError, warn_user
from mercer.training.batches import count_batches, epoch_batches
from mercer.training.checkpoint import Checkpoint
from mercer.training.optimizers import make_optimizer
from mercer.training.progress import Progress
from mercer.training.randomness import generator_of, global_chance_from, seed_of
from mercer.training.recipe import Recipe
from mercer.training.saved_state import PROGRESS, check_progress, checked_parts, optimizer_slots
from mercer.training.states import (
    State,
    are_finite,
    optimizer_state,
    restore,
    restore_optimizer,
    snapshot,
    trained_parameters,
)
from mercer.training.stopping import best_epoch, epochs_without_gain


class Callables(NamedTuple):
    """The functions that the caller of `train` gives for each step and epoch; see `train`."""

    batch_loss: Callable[[Tensor, torch.Generator], Tensor]
    precondition: Callable[[Tensor, torch.Generator], None] | None = None
    after_step: Callable[[], None] | None = None
    validation: Callable[[torch.Generator], float] | None = None
    progress: Progress | None = None


class NotFinite(ArithmeticError):
    """An error inside a training whose message says what was not finite."""


class Run:
    """A running training; the parameters are those of `train`.

    Its whole state is saved in a checkpoint: the states of the module and the optimizer, `step`, `history`,
    `summed_loss` (over the rows of the epoch so far), `best` (the state of the module at the best epoch), `stopped` and
    `warning`.
    """

    def __init__(
        self, module: nn.Module, callables: Callables, n_rows: int, recipe: Recipe, seed: int, min_batch: int
    ) -> None:
        self.module = module
        self.callables = callables
        self.n_rows = n_rows
        self.recipe = recipe
        self.seed = seed
        self.n_batches = count_batches(n_rows, recipe.batch_size, min_batch)
        self.parameters = trained_parameters(module)
        self.device = next(iter(self.parameters.values())).device
        # A module may hold infinities on purpose, such as masks. Everything that is finite now must stay finite.
        self.finite = {name for name, value in snapshot(module).items() if are_finite([value])}
        if not self.finite.issuperset(self.parameters):
            broken = sorted(set(self.parameters) - self.finite)
            raise ValueError(f"module has parameters that are not finite before the first step: {', '.join(broken)}.")
        self.optimizer = make_optimizer(
            recipe.optimizer, self.parameters.values(), recipe.learning_rate, recipe.weight_decay, recipe.momentum
        )
        self.checkpoint: Checkpoint | None = None
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self.summed_loss = 0.0
        self.best: State = {}
        self.stopped = ""
        self.warning = ""
        self.good: State = {}  # the last state at which loss and gradient were finite

    @property
    def criteria(self) -> list[float]:
        return [record["criterion"] for record in self.history]

    def to_the_end(self) -> None:
        """Train, starting from the checkpoint if there is one, and leave the module in its final state."""
        self._resume()
        if not self.stopped:
            try:
                while not self.stopped:
                    self._epoch()
                if self.best:
                    restore(self.module, self.best)
            except NotFinite as found:
                self._stop_at_nan(str(found))
            self.optimizer.zero_grad()
            self._save(module=snapshot(self.module))
        if self.warning:
            warn_user(self.warning, ConvergenceWarning)

    def _epoch(self) -> None:
        """Make the remaining steps of the current epoch, and end it."""
        epoch, done = divmod(self.step, self.n_batches)
        self._report(epoch, None)
        for rows in epoch_batches(self.n_rows, self.n_batches, self.seed, epoch)[done:]:
            self._step(rows)
        self._end_epoch(epoch)

    def _step(self, rows: Tensor) -> None:
        """Make one step: compute the gradients, write a checkpoint if one is due, and update the parameters."""
        before = snapshot(self.module)
        loss = self._find_gradients(rows)
        self.good = before
        # The state is saved before the update, since it is known to be finite. A resumed training repeats this step.
        if self.checkpoint is not None and self.checkpoint.is_due():
            moments = optimizer_state(self.optimizer, self.parameters)
            self._save(module=before, best=self.best, optimizer=moments)
        self._update()
        self.summed_loss += loss * len(rows)
        self.step += 1

    def _find_gradients(self, rows: Tensor) -> float:
        """Set the (preconditioned) gradients of the parameters, and return the loss of the batch."""
        self.optimizer.zero_grad()
        with self._seeded("step", self.step), torch.enable_grad():
            loss = self.callables.batch_loss(rows, generator_of(self.seed, "views", self.step))
            value = _loss_value(loss)
            _require(math.isfinite(value), f"the loss is {value}")
            loss.backward()
        self._check_gradients("the gradient")
        if self.callables.precondition is not None:
            with self._seeded("step", self.step), torch.enable_grad():
                self.callables.precondition(rows, generator_of(self.seed, "views", self.step))
            self._check_gradients("the preconditioned gradient")
        return value

    def _update(self) -> None:
        """Clip the gradients, make a step of the optimizer, and call `after_step`."""
        if self.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters.values(), self.recipe.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(self.step, self.n_batches)
        self.optimizer.step()
        if self.callables.after_step is not None:
            with self._seeded("after_step", self.step), torch.no_grad():
                self.callables.after_step()

    def _end_epoch(self, epoch: int) -> None:
        """Add the epoch to the history, keep the module's state if it is the best, and decide whether to stop."""
        loss, self.summed_loss = self.summed_loss / self.n_rows, 0.0
        kept = (value for name, value in self.module.state_dict().items() if name in self.finite)
        _require(are_finite(kept), "the step led to parameters or buffers that are not finite")
        criterion = loss if self.callables.validation is None else self._validate()
        _require(math.isfinite(criterion), f"the criterion is {criterion}")
        rate = self.recipe.rate(self.step - 1, self.n_batches)
        self.history.append({"epoch": epoch, "loss": loss, "criterion": criterion, "learning_rate": rate})
        if self.recipe.keep == "best" and best_epoch(self.criteria) == epoch:
            self.best = snapshot(self.module)
        asked = self._report(epoch, self.history[-1])
        idle = epochs_without_gain(self.criteria, self.recipe.tolerance)
        if epoch + 1 == self.recipe.n_epochs:
            self.stopped = "finished"
        elif self.recipe.patience is not None and idle >= self.recipe.patience:
            self.stopped = "patience"
        elif asked:
            self.stopped = "callback"

    def _validate(self) -> float:
        """Return the caller's criterion of the epoch, and restore the modes of the module."""
        modes = [(part, part.training) for part in self.module.modules()]
        with self._seeded("validation"), torch.no_grad():
            criterion = float(self.callables.validation(generator_of(self.seed, "validation")))  # type: ignore[misc]
        for part, training in modes:
            part.training = training
        return criterion

    def _stop_at_nan(self, found: str) -> None:
        """Restore the best state, or else the last good one, and set the warning; an error if there is none."""
        rate = self.recipe.rate(max(0, self.step - 1), self.n_batches)
        where = f"after {self.step} steps, in epoch {len(self.history)} at a learning rate of {rate:.3g}, {found}"
        if not self.good:
            raise NumericalError(f"{where}. Nothing was learned yet: check the loss, the data and the initial state.")
        restore(self.module, self.best or self.good)
        kept = f"epoch {best_epoch(self.criteria)}, the best" if self.best else "the last step where all was finite"
        self.stopped = "nan"
        self.warning = (
            f"training stopped: {where}. The module keeps its state of {kept}. A smaller learning_rate, a longer "
            "warm-up (warmup_epochs) or clip_norm would help."
        )

    def _save(self, **parts: Mapping[str, Tensor]) -> None:
        """Write a checkpoint, if there is one, with the progress and the given states."""
        if self.checkpoint is None:
            return
        document = {name: getattr(self, name) for name in PROGRESS}
        self.checkpoint.write(
            document, {f"{part}/{name}": value for part, state in parts.items() for name, value in state.items()}
        )

    def _resume(self) -> None:
        """Restore the states and the progress of the checkpoint, if its file exists."""
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None:
            return
        document, tensors = saved
        try:
            parts = checked_parts(tensors, self.module, self.finite, optimizer_slots(self.recipe))
            check_progress(document, self.n_batches, self.recipe.n_epochs)
        except ModelFileError as error:
            raise self.checkpoint.wrong(str(error)) from None  # type: ignore[union-attr]
        for name in PROGRESS:
            setattr(self, name, document[name])
        restore(self.module, parts["module"])
        restore_optimizer(self.optimizer, self.parameters, parts["optimizer"])
        self.best = parts["best"]
        self.good = snapshot(self.module)

    def _check_gradients(self, what: str) -> None:
        gradients = [parameter.grad for parameter in self.parameters.values()]
        _require(are_finite(gradients), f"{what} has numbers that are not finite")

    def _seeded(self, purpose: str, number: int = 0) -> AbstractContextManager[None]:
        """Return a context in which torch's global generators are seeded for a purpose and a step."""
        return global_chance_from(seed_of(self.seed, purpose, number), self.device)

    def _report(self, epoch: int, record: dict[str, Any] | None) -> bool:
        """Call `progress` of the caller; return whether it asks to stop."""
        progress = self.callables.progress
        return progress is not None and bool(progress(epoch, self.recipe.n_epochs, record))


def _loss_value(loss: Any) -> float:
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        found = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise TypeError(f"batch_loss returned {found}: a tensor of one number, with a gradient, is needed.")
    return float(loss.detach())


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotFinite(otherwise)
