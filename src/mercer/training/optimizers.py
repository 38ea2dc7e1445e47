"""The optimizers by name; each parameter means the same for all of them."""

from collections.abc import Iterable

import torch
from torch import Tensor

from mercer.checks import check_choice
from mercer.training.lars import LARS

OPTIMIZERS = ("sgd", "adam", "adamw", "lars")


def make_optimizer(
    name: str, parameters: Iterable[Tensor], learning_rate: float, weight_decay: float = 0.0, momentum: float = 0.9
) -> torch.optim.Optimizer:
    """Return the optimizer of that name.

    Parameters
    ----------
    name : {"sgd", "adam", "adamw", "lars"}
    parameters : iterable of tensors
    learning_rate : float
    weight_decay : float, default=0.0
        It is multiplied by the parameter and added to the gradient; "adamw" shrinks the parameter itself instead.
    momentum : float, default=0.9
        The weight of earlier gradients in the running mean: Adam's first beta.
    """
    check_choice("optimizer", name, OPTIMIZERS)
    if name == "lars":
        return LARS(parameters, lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, weight_decay=weight_decay)
    adam = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return adam(parameters, lr=learning_rate, betas=(momentum, 0.999), weight_decay=weight_decay)
