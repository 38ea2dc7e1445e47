"""Optimizers and learning-rate schedules as values, which can be passed to estimators, compared, saved and printed."""

from dataclasses import dataclass
from typing import Any, ClassVar

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter


@dataclass(frozen=True)
class Adam:
    """The optimizer Adam (Kingma and Ba 2015), in which a step changes every entry by about the learning rate.

    Parameters
    ----------
    learning_rate : float, default=0.001
        The largest learning rate.
    weight_decay : float, default=0.0
        A number that is multiplied by the parameters and added to their gradients.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    name: ClassVar[str] = "adam"
    momentum: ClassVar[float] = 0.9

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=0.0)
        check_number("weight_decay", self.weight_decay, at_least=0.0)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent: steps along the gradient, or along the preconditioned gradient if there is one.

    Parameters
    ----------
    learning_rate : float, default=0.1
        The largest learning rate.
    momentum : float, default=0.0
        The weight of earlier gradients in the running sum, at least 0 and below 1.
    """

    learning_rate: float = 0.1
    momentum: float = 0.0
    name: ClassVar[str] = "sgd"
    weight_decay: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=0.0)
        if not 0.0 <= check_number("momentum", self.momentum) < 1.0:
            raise invalid_parameter("momentum", self.momentum, "a number at least 0 and below 1")


@dataclass(frozen=True)
class Cosine:
    """A learning rate that rises linearly to its largest value and then falls along half a cosine (`warmup_cosine`).

    Parameters
    ----------
    warmup_epochs : float, default=1.0
        The number of epochs, or a fraction of one, during which the learning rate rises.
    final : float, default=0.0
        The last learning rate as a share of the largest, from 0 to 1. With 1 it is constant after the warm-up.
    """

    warmup_epochs: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        check_number("warmup_epochs", self.warmup_epochs, at_least=0.0)
        check_number("final", self.final, at_least=0.0, at_most=1.0)


OPTIMIZER_VALUES: dict[str, type[Adam] | type[SGD]] = {"adam": Adam, "sgd": SGD}


def check_optimizer(value: Any) -> Adam | SGD:
    """Return the optimizer that `value` stands for: that of the given name with its defaults, or the value itself."""
    if isinstance(value, str) and value in OPTIMIZER_VALUES:
        return OPTIMIZER_VALUES[value]()
    if not isinstance(value, (Adam, SGD)):
        raise invalid_parameter("optimizer", value, "'adam', 'sgd', Adam(...) or SGD(...) of mercer.training")
    return value
