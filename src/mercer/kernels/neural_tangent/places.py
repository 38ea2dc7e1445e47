"""The batch axis in the inputs and outputs of layers, found by comparing the shapes for one row and for three."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.kernels.neural_tangent.direct import Scale, Shift
from mercer.kernels.neural_tangent.tracing import Call, Kind

# A network is run on a batch of one row and on a batch of this many rows.
TRIAL_ROWS = 3
# Relative tolerance for equal results, since rounding depends on the number of rows in a batch.
TOLERANCE = 1e-3


class Place(NamedTuple):
    """The batch axis of a tensor, and how many consecutive entries along it belong to one sample."""

    axis: int
    entries: int

    def in_front(self, values: Tensor) -> Tensor:
        """Move the batch axis to the front: return values of shape (n, ...), or (n, entries, ...) if entries > 1."""
        moved = values.movedim(self.axis, 0)
        return moved if self.entries == 1 else moved.unflatten(0, (-1, self.entries))


def place_of(one: torch.Size, some: torch.Size) -> Place | None:
    """Return the batch axis of a tensor from its shapes for 1 row and for 3 rows, or None if there is none."""
    if len(one) != len(some):
        return None
    grown = [axis for axis, (a, b) in enumerate(zip(one, some, strict=True)) if a != b]
    if len(grown) != 1 or some[grown[0]] != TRIAL_ROWS * one[grown[0]]:
        return None
    (axis,) = grown
    # Several entries of one sample are known to be consecutive along the first axis only.
    return Place(axis, one[axis]) if one[axis] == 1 or axis == 0 else None


def places_of(one: Call, some: Call) -> tuple[Place, Place] | None:
    """Return the batch axes of the input and the output of a call, or None if they cannot be determined."""
    at_input, at_output = place_of(one.input.shape, some.input.shape), place_of(one.shape, some.shape)
    if at_input is None or at_output is None:
        return None
    first = at_input.in_front(some.input.detach())[0]
    if not close(at_input.in_front(one.input.detach())[0], first):
        return None
    return (at_input, at_output) if all(fits(kind, at_output, some.shape) for kind in some.uses.values()) else None


def fits(kind: Kind, place: Place, shape: torch.Size) -> bool:
    """Whether a shift or scale still broadcasts to the same axes after the batch axis has moved to the front."""
    return not isinstance(kind, (Shift, Scale)) or place.axis == 0 or len(kind.shape) < len(shape) - place.axis


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal up to the rounding errors of a network."""
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    scale = float(b.abs().max()) if b.numel() else 0.0
    return bool(torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale))
