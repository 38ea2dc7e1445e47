"""A network in use: its output for many rows, block by block; its weights, taken and put back; a guarded loss."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from mercer.blocks import as_tensor, row_slices
from mercer.exceptions import ModelFileError, NumericalError, shortened

ROWS_A_BLOCK = 2048
Network = TypeVar("Network", bound=nn.Module)


@torch.no_grad()
def by_blocks(function: Callable[[Tensor], Tensor], X: np.ndarray, like: Tensor) -> Tensor:
    """Return a network's output for all rows, worked out for 2048 of them at a time.

    Parameters
    ----------
    function : callable
        Rows, (b, D) -> (b, k).
    X : ndarray of shape (n, D)
    like : tensor
        Rows get its type and go where it is.

    Returns
    -------
    tensor of shape (n, k), with finite numbers: others are an error
    """
    blocks = row_slices(len(X), ROWS_A_BLOCK)
    result = torch.cat([function(as_tensor(X[rows], dtype=like.dtype, device=like.device)) for rows in blocks])
    broken = int((~torch.isfinite(result)).any(dim=1).sum())
    if broken:
        raise NumericalError(f"backbone and heads give NaN or infinite numbers for {broken} of the {len(X)} rows.")
    return result


def arrays_of(network: nn.Module) -> dict[str, np.ndarray]:
    """Return a copy of a network's weights and buffers, as a model file holds them."""
    return {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}


def with_arrays(network: Network, weights: Mapping[str, np.ndarray]) -> Network:
    """Put such weights into a network of the same build; return it, in evaluation mode."""
    try:
        network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    except RuntimeError as error:
        what = shortened(" ".join(str(error).split()))
        raise ModelFileError(f"weights_ do not fit the network that the parameters describe: {what}") from error
    return network.eval()


def guarded(parts: Sequence[Tensor], loss: Callable[[], Tensor]) -> Tensor:
    """Return the loss, or NaN if features are not finite: the trainer then stops and keeps the last good state."""
    if all(bool(torch.isfinite(part.detach()).all()) for part in parts):
        return loss()
    return torch.stack([part.sum() for part in parts]).sum() * math.nan
