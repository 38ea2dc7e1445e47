"""Where samples are in the inputs and outputs of layers, found by how these grow with the number of rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.kernels.neural_tangent.direct import Scale, Shift
from mercer.kernels.neural_tangent.tracing import Call, Kind

# Rows of the larger trial; the smaller one has a single row.
TRIAL_ROWS = 3
# Products of one row and of several are rounded differently.
TOLERANCE = 1e-3


class Place(NamedTuple):
    """Where samples are in a tensor: along which axis, and how many entries there belong to each."""

    axis: int
    entries: int

    def in_front(self, values: Tensor) -> Tensor:
        """Return the values with the samples in front, of shape (n, ...) or (n, entries, ...)."""
        moved = values.movedim(self.axis, 0)
        return moved if self.entries == 1 else moved.unflatten(0, (-1, self.entries))


def place_of(one: torch.Size, some: torch.Size) -> Place | None:
    """Return where samples are in a tensor of which the shapes for 1 and for 3 rows are given; None if nowhere."""
    if len(one) != len(some):
        return None
    grown = [axis for axis, (a, b) in enumerate(zip(one, some, strict=True)) if a != b]
    if len(grown) != 1 or some[grown[0]] != TRIAL_ROWS * one[grown[0]]:
        return None
    (axis,) = grown
    # Entries of one sample are beside each other along the first axis alone; elsewhere it cannot be known.
    return Place(axis, one[axis]) if one[axis] == 1 or axis == 0 else None


def places_of(one: Call, some: Call) -> tuple[Place, Place] | None:
    """Return where samples are in the input and in the output of a call; None if that cannot be told."""
    at_input, at_output = place_of(one.input.shape, some.input.shape), place_of(one.shape, some.shape)
    if at_input is None or at_output is None:
        return None
    first = at_input.in_front(some.input.detach())[0]
    if not close(at_input.in_front(one.input.detach())[0], first):
        return None
    return (at_input, at_output) if all(fits(kind, at_output, some.shape) for kind in some.uses.values()) else None


def fits(kind: Kind, place: Place, shape: torch.Size) -> bool:
    """Whether a parameter that is repeated over positions keeps its axes when samples are moved to the front."""
    return not isinstance(kind, (Shift, Scale)) or place.axis == 0 or len(kind.shape) < len(shape) - place.axis


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal up to the rounding of a network."""
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    scale = float(b.abs().max()) if b.numel() else 0.0
    return bool(torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale))
