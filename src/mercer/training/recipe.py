"""What a training does, as one value."""

from dataclasses import dataclass, replace
from typing import Any

from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import invalid_parameter
from mercer.training.batches import count_batches
from mercer.training.optimizers import OPTIMIZERS
from mercer.training.schedules import warmup_cosine

KEEP = ("best", "last")


@dataclass(frozen=True)
class Recipe:
    """How a module is trained: optimizer, learning rates, batches, and when to stop.

    Parameters
    ----------
    n_epochs : int
        Passes over the rows, at most.
    batch_size : int, default=256
        Rows of a batch, at most; see `mercer.training.batches`.
    optimizer : {"sgd", "adam", "adamw", "lars"}, default="adam"
    learning_rate : float, default=0.001
        Its peak, after the warm-up.
    weight_decay : float, default=0.0
    momentum : float, default=0.9
        The weight of the past in the running gradient, from 0 to below 1.
    warmup_epochs : float, default=0.0
        How long the learning rate rises, in epochs or parts of one.
    final_learning_rate : float, default=0.0
        Where cosine annealing ends; equal to `learning_rate` it is constant.
    clip_norm : float or None, default=None
        Gradients whose norm, over all parameters, is larger are scaled down to it.
    patience : int or None, default=None
        Stop once so many epochs in a row have not lowered the criterion by more than `tolerance`. None never does.
    tolerance : float, default=0.0
    keep : {"best", "last"}, default="best"
        Which state the module ends with: that of the epoch with the smallest criterion, or the last.
    """

    n_epochs: int
    batch_size: int = 256
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.9
    warmup_epochs: float = 0.0
    final_learning_rate: float = 0.0
    clip_norm: float | None = None
    patience: int | None = None
    tolerance: float = 0.0
    keep: str = "best"

    def __post_init__(self) -> None:
        n_epochs = check_count("n_epochs", self.n_epochs)
        learning_rate = check_number("learning_rate", self.learning_rate, above=0.0)
        checked: dict[str, Any] = {
            "n_epochs": n_epochs,
            "batch_size": check_count("batch_size", self.batch_size),
            "optimizer": check_choice("optimizer", self.optimizer, OPTIMIZERS),
            "learning_rate": learning_rate,
            "weight_decay": check_number("weight_decay", self.weight_decay, at_least=0.0),
            "momentum": check_number("momentum", self.momentum, at_least=0.0),
            "warmup_epochs": check_number("warmup_epochs", self.warmup_epochs, at_least=0.0, at_most=n_epochs),
            "final_learning_rate": check_number(
                "final_learning_rate", self.final_learning_rate, at_least=0.0, at_most=learning_rate
            ),
            "tolerance": check_number("tolerance", self.tolerance, at_least=0.0),
            "keep": check_choice("keep", self.keep, KEEP),
        }
        if checked["momentum"] >= 1.0:
            raise invalid_parameter("momentum", self.momentum, "a number at least 0 and below 1")
        if self.clip_norm is not None:
            checked["clip_norm"] = check_number("clip_norm", self.clip_norm, above=0.0)
        if self.patience is not None:
            checked["patience"] = check_count("patience", self.patience)
        for name, value in checked.items():  # numbers of NumPy become Python's, which go into a checkpoint
            object.__setattr__(self, name, value)

    def lasting(self, n_steps: int, n_rows: int, min_batch: int = 1) -> "Recipe":
        """Return the recipe with as many epochs of n_rows as make n_steps, or a few more."""
        return replace(self, n_epochs=-(-n_steps // count_batches(n_rows, self.batch_size, min_batch)))

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """Return the learning rate of a step."""
        return warmup_cosine(
            step,
            self.n_epochs * steps_per_epoch,
            round(self.warmup_epochs * steps_per_epoch),
            self.learning_rate,
            self.final_learning_rate,
        )


def check_recipe(name: str, value: Any) -> None:
    """Raise unless `value` is what an estimator takes for a recipe."""
    if value is not None and not isinstance(value, Recipe):
        raise invalid_parameter(name, value, "a mercer.training.Recipe or None")
