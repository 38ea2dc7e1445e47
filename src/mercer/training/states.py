"""The states of a module and of its optimizer as named tensors: copies of them, restoring them, checks of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

State = dict[str, Tensor]


def trained_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that require gradients, by name; an error if there are none."""
    parameters = {name: value for name, value in module.named_parameters() if value.requires_grad}
    if not parameters:
        raise ValueError(f"module={type(module).__name__} has no parameter that requires a gradient: nothing to train.")
    return parameters


def describe(module: nn.Module) -> dict[str, str]:
    """Return the type and shape of each parameter and buffer of a module, and whether it is trained.

    A checkpoint fits a module with an equal description.
    """
    trained = trained_parameters(module)
    return {
        name: f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{' trained' if name in trained else ''}"
        for name, value in snapshot(module).items()
    }


def snapshot(module: nn.Module) -> State:
    """Return copies of the module's parameters and persistent buffers."""
    state = module.state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"module has the state {name!r} of type {type(value).__name__}: only tensors can be kept; store "
                "numbers in buffers."
            )
    return {name: value.detach().clone() for name, value in state.items()}


def restore(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load a state in place, so that the optimizer's references to the parameters stay valid."""
    module.load_state_dict(state)


def are_finite(tensors: Iterable[Tensor | None]) -> bool:
    """Whether none of the tensors has a NaN or an infinity; None stands for no tensor."""
    # A finite sum means that all its terms are finite, and is 30 times as fast. If the sum is not finite, it may have
    # overflowed, and each number is checked.
    return all(
        bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all())
        for tensor in tensors
        if tensor is not None
    )


def optimizer_state(optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> State:
    """Return copies of the optimizer's tensors (momenta, numbers of steps), named slot/parameter."""
    return {
        f"{slot}/{name}": value.detach().clone()
        for name, parameter in parameters.items()
        for slot, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter], state: Mapping[str, Tensor]
) -> None:
    """Load the result of `optimizer_state`; learning rates and other parameters of the optimizer do not change."""
    index = {name: i for i, name in enumerate(parameters)}
    slots: dict[int, dict[str, Any]] = {}
    for key, value in state.items():
        slot, name = key.split("/", 1)
        like = parameters[name]
        if value.shape == like.shape:  # with the parameter's memory layout, so that sums have the same order
            value = torch.empty_like(like, dtype=value.dtype, device=value.device).copy_(value)
        slots.setdefault(index[name], {})[slot] = value.clone()
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
