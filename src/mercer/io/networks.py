"""Networks in model files: Mercer's own are rebuilt from their settings, and the user gives other networks again."""

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from mercer.exceptions import InvalidParameterError, ModelFileError

# Names in files -> the module of the class. The `settings` of a network are the arguments that rebuild it.
NETWORKS: dict[str, str] = {
    **{f"mercer.networks.{name}": "mercer.networks" for name in ("MLP", "CNN", "ResNet", "ResMLP", "AttentionNetwork")},
    "mercer.networks.ResNet18": "mercer.networks.backbones",
    "mercer.image_features.EfficientNetLite0": "mercer.image_features",
}


class NetworkMismatch(InvalidParameterError):
    """The network that the user gave is not built like the one that was saved."""


def name_of(network: nn.Module) -> str | None:
    """Return the name of a network's class in files, or None for a class of the user's own."""
    for name, module in NETWORKS.items():
        kind = type(network).__name__
        if name.endswith(f".{kind}") and getattr(import_module(module), kind) is type(network):
            return name
    return None


def rebuilt(
    name: str, settings: Mapping[str, Any], weights: Mapping[str, Tensor], modes: Mapping[str, Any]
) -> nn.Module:
    """Return one of Mercer's networks with its weights and modes; no memory is taken before the weights fit."""
    if name not in NETWORKS:
        raise ModelFileError(f"asks for the network {name!r}, which is not one that may be built")
    kind = getattr(import_module(NETWORKS[name]), name.rpartition(".")[2])
    with torch.device("meta"):
        network = kind(**settings)
    if differences(network, weights):
        raise ModelFileError(f"has weights that do not fit {name}: {differences(network, weights)}")
    for key, value in weights.items():
        if not torch.isfinite(value).all():
            raise ModelFileError(f"has NaN or infinite numbers in {key} of {name}")
    network.load_state_dict(dict(weights), assign=True)
    frozen = set(modes["frozen"])
    for key, parameter in network.named_parameters():
        parameter.requires_grad_(key not in frozen)
    return network.train(bool(modes["training"]))


def modes_of(network: nn.Module) -> dict[str, Any]:
    """Return whether a network is in training mode, and which of its parameters require no gradient."""
    frozen = [name for name, parameter in network.named_parameters() if not parameter.requires_grad]
    return {"training": network.training, "frozen": frozen}


def with_weights(given: Any, weights: Mapping[str, Tensor], name: str) -> nn.Module:
    """Return a user's network with the saved weights: the network itself if it has them, otherwise a copy."""
    if not isinstance(given, nn.Module):
        raise NetworkMismatch(f"{name} is a {type(given).__name__}: it must be the torch.nn.Module that was saved.")
    found = differences(given, weights)
    if found:
        raise NetworkMismatch(f"{name} is not built like the network that was saved: {found}.")
    ours = given.state_dict()
    if all(torch.equal(ours[key].cpu(), weights[key]) for key in weights):
        return given
    network = copy.deepcopy(given)
    network.load_state_dict(dict(weights))
    return network


def differences(network: nn.Module, weights: Mapping[str, Tensor]) -> str:
    """Return in words the first weight whose name or shape differs between a network and a file, or an empty string."""
    ours = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in weights.items()}
    for name in theirs:
        if name not in ours:
            return f"it has no {name}, which was saved with shape {theirs[name]}"
        if ours[name] != theirs[name]:
            return f"its {name} has shape {ours[name]}, and the one that was saved {theirs[name]}"
    more = [name for name in ours if name not in theirs]
    return f"it has {more[0]}, which was not saved" if more else ""
