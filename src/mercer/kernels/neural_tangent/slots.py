"""The form in which the gradient by each set of weights is stored: in full, as factors, or projected."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.kernels.neural_tangent.convolution import Convolution, PatchFactors
from mercer.kernels.neural_tangent.dense import Dense, DenseFactors, positions
from mercer.kernels.neural_tangent.direct import Shift
from mercer.kernels.neural_tangent.parts import Features, Part
from mercer.kernels.neural_tangent.places import Place
from mercer.kernels.neural_tangent.projection import Projection, drawn_projection
from mercer.kernels.neural_tangent.tracing import Call, Key, Kind

# Gradients of up to this many numbers are not projected. Projecting them gains nothing, and those of the head, which
# are among them, contribute much to the kernel.
SMALL = 4096


class Slot(NamedTuple):
    """One set of weights: the calls that use it, and the form in which its gradient G is stored.

    Attributes
    ----------
    key : Key
    calls : tuple of int
        The indices of the calls of a pass that use the weights; several if weights are shared.
    keeps : str
        "gradient" is G itself, "factors" are the factors of G for a dense layer and "patches" those for a convolution,
        and "projection" is a random projection of G.
    with_bias : bool
        Whether the layer's bias is included, as the column of W for an input that is always 1.
    projection : Projection or None
    """

    key: Key
    calls: tuple[int, ...]
    keeps: str
    with_bias: bool = False
    projection: Projection | None = None

    def part(
        self, calls: Sequence[Call], gradients: Sequence[Tensor | None], places: Sequence[tuple[Place, Place]]
    ) -> Part:
        """Return what is stored of a pass, from its calls and the gradients of the head by their outputs."""
        uses = [self._use(calls[i], gradients[i], *places[i]) for i in self.calls]
        if self.keeps == "gradient":
            return Features(reduce(add, (kind.gradient(a, g) for kind, a, g in uses)))
        if self.projection is not None:
            return Features(reduce(add, (self.projection.gradient(kind, a, g) for kind, a, g in uses)))
        if self.keeps == "patches":
            ((kind, a, g),) = uses
            return PatchFactors(a, as_images(g), kind)  # type: ignore[arg-type]
        factors = [factors_of(kind, a, g) for kind, a, g in uses]
        a, g = (torch.cat(column, dim=1) if len(uses) > 1 else column[0] for column in zip(*factors, strict=True))
        if self.with_bias:
            a = torch.cat([a, a.new_ones((*a.shape[:2], 1))], dim=2)
        return DenseFactors(a, g)

    def _use(self, call: Call, g: Tensor | None, at_input: Place, at_output: Place) -> tuple[Kind, Tensor, Tensor]:
        kind = call.uses[self.key]
        a = at_input.in_front(kind.seen(call.input.detach()))
        # The gradient is zero for a layer on which the head does not depend.
        at = torch.zeros(call.shape, dtype=a.dtype, device=a.device) if g is None else g
        return kind, a, at_output.in_front(at)


def as_images(g: Tensor) -> Tensor:
    """Return gradients by a convolution's output in the shape (n, c, h, w), with h = 1 in one dimension."""
    return g.unsqueeze(2) if g.ndim == 3 else g


def factors_of(kind: Kind, a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors u and g of G = sum_p g_p u_p^T, of shapes (n, P, c_in) and (n, P, c_out)."""
    if not isinstance(kind, Convolution):
        return positions(a), positions(g)
    n = len(a)
    u = kind.patches(a.reshape(-1, *a.shape[-3:]))[:, 0]
    v = g.reshape(len(u), -1, u.shape[2])
    return u.mT.reshape(n, -1, u.shape[1]), v.mT.reshape(n, -1, v.shape[1])


def chosen_slots(
    calls: Sequence[Call],
    places: Sequence[tuple[Place, Place]],
    weights: Mapping[int, Tensor],
    n_projections: int | None,
    explicit: bool,
    generator: torch.Generator,
) -> list[Slot]:
    """Choose for each set of weights the smallest form in which its gradient can be stored.

    Parameters
    ----------
    calls : sequence of Call
        The calls of a trial pass.
    places : sequence of (Place, Place)
        The batch axes of the inputs and outputs of the calls.
    weights : dict of identities to tensors
        The parameters whose use is known.
    n_projections : int or None
    explicit : bool
        Whether gradients must be stored as flat rows of numbers, not as factors.
    generator : torch.Generator
        The source of the random projections.
    """
    where: dict[Key, tuple[int, ...]] = {}
    for i, call in enumerate(calls):
        for key in call.uses:
            if key[0] in weights:
                where[key] = (*where.get(key, ()), i)
    slots = [
        chosen_slot(key, used, calls, places, weights[key[0]], n_projections, explicit, generator)
        for key, used in where.items()
    ]
    dense = [
        slot for slot in slots if slot.keeps == "factors" and isinstance(calls[slot.calls[0]].uses[slot.key], Dense)
    ]
    # A bias that is used in the same calls as one matrix, and in no others, becomes a column of that matrix for an
    # input that is always 1.
    bias_of: dict[Key, Key] = {}
    for slot in dense:
        for key, used in where.items():
            if used == slot.calls and all(isinstance(calls[i].uses[key], Shift) for i in used):
                bias_of.setdefault(slot.key, key)
    merged = set(bias_of.values())
    return [slot._replace(with_bias=slot.key in bias_of) for slot in slots if slot.key not in merged]


def chosen_slot(
    key: Key,
    used: tuple[int, ...],
    calls: Sequence[Call],
    places: Sequence[tuple[Place, Place]],
    weight: Tensor,
    n_projections: int | None,
    explicit: bool,
    generator: torch.Generator,
) -> Slot:
    """Choose the smallest form of one gradient: in full, as factors, or (with `n_projections`) projected."""
    kinds = [calls[i].uses[key] for i in used]
    is_dense = all(isinstance(kind, Dense) for kind in kinds)
    is_convolution = all(isinstance(kind, Convolution) and kind.groups == 1 for kind in kinds)
    if not (is_dense or is_convolution):
        return Slot(key, used, "gradient")
    c_out, c_in = matrix_shape(calls[used[0]], kinds[0])
    n_factors = sum(numbers_of_factors(calls[i], *places[i]) for i in used)
    smallest = c_out * c_in if explicit else min(c_out * c_in, n_factors)
    t = c_in if n_projections is None or smallest <= SMALL else n_projections
    if t < c_in and c_out * t < smallest:
        return Slot(key, used, "projection", projection=drawn_projection(kinds[0], c_in, t, generator, weight))
    if c_out * c_in == smallest:
        return Slot(key, used, "gradient")
    is_plain = is_convolution and len(used) == 1 and places[used[0]][0].entries == 1
    return Slot(key, used, "patches" if is_plain else "factors")


def matrix_shape(call: Call, kind: Kind) -> tuple[int, int]:
    """Return (c_out, c_in), the shape of the matrix of weights that a call uses."""
    if isinstance(kind, Convolution):
        return call.shape[1], call.input.shape[1] * kind.kernel[0] * kind.kernel[1]
    return call.shape[-1], call.input.shape[-1]


def numbers_of_factors(call: Call, at_input: Place, at_output: Place) -> int:
    """Return how many numbers the input and the output of a call have in total for one row."""
    n_rows = call.shape[at_output.axis] // at_output.entries
    return (call.input.numel() + call.shape.numel()) // n_rows
