"""Checks of the content of a checkpoint before a training resumes from it: the file may be damaged or forged."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mercer.exceptions import ModelFileError, escaped, shortened, shown
from mercer.training.optimizers import make_optimizer
from mercer.training.recipe import Recipe
from mercer.training.states import State, are_finite, trained_parameters

# The progress of a training: names of attributes of a `Run` and of entries in the document of its checkpoint.
PROGRESS = ("step", "history", "summed_loss", "stopped", "warning")
STOPS = ("", "finished", "patience", "callback", "nan")
OF_EPOCH = ("loss", "criterion", "learning_rate")


def check_progress(document: Mapping[str, Any], n_batches: int, n_epochs: int) -> None:
    """Raise an error unless steps, history and losses are possible for `n_epochs` epochs of `n_batches` batches."""
    missing = [name for name in PROGRESS if name not in document]
    if missing:
        raise _malformed(f"{missing[0]} is missing")
    step, history, stopped = document["step"], document["history"], document["stopped"]
    if type(step) is not int or not 0 <= step <= n_batches * n_epochs:
        raise _malformed(f"step is {shown(step)}, but the training has {n_batches * n_epochs} steps")
    if not isinstance(stopped, str) or stopped not in STOPS or not isinstance(document["warning"], str):
        raise _malformed(f"stopped is {shown(stopped)}, warning is {shown(document['warning'])}")
    if not _is_finite(document["summed_loss"]):
        raise _malformed(f"summed_loss is {shown(document['summed_loss'])}, and must be a finite number")
    # If a training became NaN at the end of an epoch, the history has no record of that epoch.
    wanted = {step // n_batches} | ({(step - 1) // n_batches} if stopped == "nan" else set())
    if not isinstance(history, list) or len(history) not in wanted:
        raise _malformed(f"history is not that of {step // n_batches} epochs")
    for epoch, record in enumerate(history):
        right = isinstance(record, dict) and record.get("epoch") == epoch
        if not right or not all(_is_finite(record.get(name)) for name in OF_EPOCH):
            raise _malformed(f"history[{epoch}] is {shown(record)}, and must have epoch, {', '.join(OF_EPOCH)}")
    if not stopped and len(history) >= n_epochs:
        raise _malformed("stopped is empty after the last epoch")


def checked_parts(
    tensors: Mapping[str, Tensor], module: nn.Module, finite: Collection[str], slots: Mapping[str, bool]
) -> dict[str, State]:
    """Return the tensors of a checkpoint in three groups, "module", "best" and "optimizer", or raise an error.

    Parameters
    ----------
    tensors : dict
        Tensors named part/name, or optimizer/slot/name.
    module : Module
        The module that is trained. Names, shapes and types must be the same.
    finite : set of str
        The names of the parameters and buffers that must be finite.
    slots : dict
        The result of `optimizer_slots`.
    """
    parts: dict[str, State] = {"module": {}, "best": {}, "optimizer": {}}
    for key, value in tensors.items():
        part, _, name = key.partition("/")
        if part not in parts:
            raise _malformed(f"{_named(key)} is no part of a training")
        parts[part][name] = value
    own, trained = module.state_dict(), trained_parameters(module)
    for part in ("module", "best") if parts["best"] else ("module",):
        if parts[part].keys() != own.keys():
            odd = sorted(parts[part].keys() ^ own.keys())[0]
            raise _malformed(f"{_named(f'{part}/{odd}')} is missing, or is not in the module")
        for name, value in parts[part].items():
            _check_like(f"{part}/{name}", value, own[name], name in finite)
    found: dict[str, set[str]] = {}
    for key, value in parts["optimizer"].items():
        slot, _, name = key.partition("/")
        if slot not in slots or name not in trained:
            raise _malformed(f"{_named(f'optimizer/{key}')} is nothing that this optimizer keeps")
        if not slots[slot] and (value.numel() != 1 or not float(value) >= 0):
            raise _malformed(f"{_named(f'optimizer/{key}')} is not one number, none negative")
        if value.is_complex() or not value.is_floating_point():
            raise _malformed(f"{_named(f'optimizer/{key}')} has no floating-point numbers")
        _check_like(f"optimizer/{key}", value, trained[name] if slots[slot] else value, True)
        found.setdefault(name, set()).add(slot)
    for name, given in found.items():
        if given != set(slots):
            raise _malformed(f"optimizer of {_named(name)} has {', '.join(sorted(given))}, not {', '.join(slots)}")
    return parts


def optimizer_slots(recipe: Recipe) -> dict[str, bool]:
    """Return the names of the tensors that an optimizer stores for a parameter, found by a trial step.

    The value is True if the tensor has the shape of the parameter, and False if it is a single number.
    """
    parameter = nn.Parameter(torch.ones(2, 2))
    optimizer = make_optimizer(
        recipe.optimizer, [parameter], recipe.learning_rate, recipe.weight_decay, recipe.momentum
    )
    parameter.grad = torch.ones(2, 2)
    optimizer.step()
    kept = optimizer.state[parameter].items()
    return {slot: value.shape == parameter.shape for slot, value in kept if value is not None}


def _check_like(name: str, value: Tensor, like: Tensor, must_be_finite: bool) -> None:
    if value.shape != like.shape or value.dtype != like.dtype:
        raise _malformed(
            f"{_named(name)} has shape {tuple(value.shape)} and type {value.dtype}, and must have {tuple(like.shape)} "
            f"and {like.dtype}"
        )
    if must_be_finite and value.is_floating_point() and not are_finite([value]):
        raise _malformed(f"{_named(name)} has NaN or infinite numbers")


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _named(name: str) -> str:
    return escaped(shortened(name))


def _malformed(what: str) -> ModelFileError:
    return ModelFileError(f"is malformed: {what}")
