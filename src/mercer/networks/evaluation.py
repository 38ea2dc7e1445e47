"""The use of a trained network: its outputs for many rows, its weights as arrays, and a loss that stops at NaN."""

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
    """Return the outputs of a network for all rows, computed for 2048 rows at a time.

    Parameters
    ----------
    function : callable
        The network, a function of rows: (b, D) -> (b, k).
    X : ndarray of shape (n, D)
    like : tensor
        Rows are converted to its type and device.

    Returns
    -------
    tensor of shape (n, k)

    Raises
    ------
    NumericalError
        If an output is NaN or infinite.
    """
    blocks = row_slices(len(X), ROWS_A_BLOCK)
    result = torch.cat([function(as_tensor(X[rows], dtype=like.dtype, device=like.device)) for rows in blocks])
    broken = int((~torch.isfinite(result)).any(dim=1).sum())
    if broken:
        raise NumericalError(f"backbone and heads give NaN or infinite numbers for {broken} of the {len(X)} rows.")
    return result


def arrays_of(network: nn.Module) -> dict[str, np.ndarray]:
    """Return a copy of a network's weights and buffers as arrays, by name, as in a model file."""
    return {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}


def with_arrays(network: Network, weights: Mapping[str, np.ndarray]) -> Network:
    """Load the result of `arrays_of` into a network with the same layers; return it in evaluation mode."""
    try:
        network.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    except RuntimeError as error:
        what = shortened(" ".join(str(error).split()))
        raise ModelFileError(f"weights_ do not fit the network that the parameters describe: {what}") from error
    return network.eval()


def guarded(parts: Sequence[Tensor], loss: Callable[[], Tensor]) -> Tensor:
    """Return the loss, or NaN if a part is not finite: the training then stops and keeps the last good state."""
    if all(bool(torch.isfinite(part.detach()).all()) for part in parts):
        return loss()
    return torch.stack([part.sum() for part in parts]).sum() * math.nan
