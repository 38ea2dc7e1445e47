"""The settings of a training, as one value."""

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
        The largest number of passes over the rows.
    batch_size : int, default=256
        The largest number of rows in a batch; see `mercer.training.batches`.
    optimizer : {"sgd", "adam", "adamw", "lars"}, default="adam"
    learning_rate : float, default=0.001
        The largest learning rate, after the warm-up.
    weight_decay : float, default=0.0
    momentum : float, default=0.9
        The weight of earlier gradients in the running mean, at least 0 and below 1.
    warmup_epochs : float, default=0.0
        The number of epochs, or a fraction of one, during which the learning rate rises.
    final_learning_rate : float, default=0.0
        The learning rate at the end of cosine annealing. If it equals `learning_rate`, the rate is constant.
    clip_norm : float or None, default=None
        If the norm of the gradient over all parameters is larger, the gradient is scaled down to it.
    patience : int or None, default=None
        Number of epochs in a row without an improvement of the criterion by more than `tolerance` after which the
        training stops. None never stops early.
    tolerance : float, default=0.0
    keep : {"best", "last"}, default="best"
        The final state of the module: that of the epoch with the smallest criterion, or the last.
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
        for name, value in checked.items():  # NumPy's numbers become Python's, which a checkpoint can hold
            object.__setattr__(self, name, value)

    def lasting(self, n_steps: int, n_rows: int, min_batch: int = 1) -> "Recipe":
        """Return the recipe with the smallest number of epochs of `n_rows` rows that has at least `n_steps` steps."""
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
    """Raise an error unless `value` is a Recipe or None."""
    if value is not None and not isinstance(value, Recipe):
        raise invalid_parameter(name, value, "a mercer.training.Recipe or None")
