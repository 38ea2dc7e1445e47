"""Optimizers and schedules of the learning rate as values: settings that are read, compared, saved and printed."""

from dataclasses import dataclass
from typing import Any, ClassVar

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015): every entry moves by about the rate.

    Parameters
    ----------
    learning_rate : float, default=0.001
        Its peak.
    weight_decay : float, default=0.0
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
    """Steps along the gradient, or what a preconditioner made of it.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Its peak.
    momentum : float, default=0.0
        The weight of the past in the running gradient, from 0 to below 1.
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
    """A linear rise to the peak, then half a cosine down to a share of it (`warmup_cosine`).

    Parameters
    ----------
    warmup_epochs : float, default=1.0
    final : float, default=0.0
        The last rate as a share of the peak, from 0 to 1; 1 keeps it constant.
    """

    warmup_epochs: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        check_number("warmup_epochs", self.warmup_epochs, at_least=0.0)
        check_number("final", self.final, at_least=0.0, at_most=1.0)


OPTIMIZER_VALUES: dict[str, type[Adam] | type[SGD]] = {"adam": Adam, "sgd": SGD}


def check_optimizer(value: Any) -> Adam | SGD:
    """Return the optimizer that a string stands for, or the value itself."""
    if isinstance(value, str) and value in OPTIMIZER_VALUES:
        return OPTIMIZER_VALUES[value]()
    if not isinstance(value, (Adam, SGD)):
        raise invalid_parameter("optimizer", value, "'adam', 'sgd', Adam(...) or SGD(...) of mercer.training")
    return value
