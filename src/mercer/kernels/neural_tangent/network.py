"""A network with a scalar head, ready for passes that give each row's gradient in parts."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from mercer.blocks import WORKING_MEMORY
from mercer.exceptions import InvalidParameterError, NumericalError, NumericalWarning, invalid_parameter, warn_user
from mercer.kernels.neural_tangent.convolution import Convolution
from mercer.kernels.neural_tangent.parts import Features, Part
from mercer.kernels.neural_tangent.places import TRIAL_ROWS, Place, close, places_of
from mercer.kernels.neural_tangent.slots import chosen_slots
from mercer.kernels.neural_tangent.tracing import Call, Tracing

HEADS = ("sum", "random")
# The weights of a random head, in units of one over the root of their number. Its own gradient is the network's
# outputs, those of all other weights are as large as its weights: at 1 they hide the features of a pretrained network
# (CIFAR-10, 3000 images, 50 components, 10 % of labels: .456 against .550 by the features alone), at .1 both are
# heard (.552). It was chosen among seven by these test figures: no blind choice.
HEAD_SCALE = 0.1
# Copies of the inputs and outputs of layers that a pass has in memory: both, gradients, and what autograd keeps. The
# output of a layer is most often the input of the next.
COPIES = 1.5
# MiB of a pass. More would help little: convolutions of eight images take a sixth less time an image than of three.
PASS_MEMORY = WORKING_MEMORY
# Numbers a row up to which parts are put beside each other.
SHORT = 2048


class TangentNetwork:
    """A copy of a network, in one precision on one device, and what a trial has shown of its parameters.

    Parameters
    ----------
    network : nn.Module
        Is copied, and never changed.
    rows : tensor of shape (n, d)
        Rows to try it on. The weights get their type and go where they are.
    image_shape : tuple of int or None
    head : None, "sum" or "random"
    n_projections : int or None
    explicit : bool
        Whether gradients are kept as rows of numbers, and not in factors.
    seed : int
        Draws the random head and the projections.
    """

    def __init__(
        self,
        network: nn.Module,
        rows: Tensor,
        *,
        image_shape: tuple[int, ...] | None,
        head: str | None,
        n_projections: int | None,
        explicit: bool,
        seed: int,
    ) -> None:
        if any(is_lazy(weight) for weight in [*network.parameters(), *network.buffers()]):
            raise InvalidParameterError("network has weights without a shape yet: run a batch through it first.")
        self.network = copy.deepcopy(network).to(dtype=rows.dtype, device=rows.device)
        self.image_shape = image_shape
        self.head = head
        generator = torch.Generator().manual_seed(seed)
        trained = [weight for weight in self.network.parameters() if weight.requires_grad]
        if not trained:
            raise InvalidParameterError("network has no parameters that require gradients: its tangent kernel is 0.")
        self.direction: nn.Parameter | None = None
        if head == "random":
            with torch.no_grad():
                width = self._outputs(rows[:1])[0].numel()
            drawn = HEAD_SCALE / width**0.5 * torch.randn((1, width), generator=generator, dtype=torch.float64)
            self.direction = nn.Parameter(drawn.to(rows))
            trained.append(self.direction)
        self.weights: dict[int, Tensor] = {id(weight): weight for weight in trained}
        calls, self.places, unknown = self._try(rows)
        self.unknown = [self.weights[key] for key in self.weights if key in unknown]
        self._warn_of_unknown()
        known = {key: weight for key, weight in self.weights.items() if key not in unknown}
        self.slots = chosen_slots(calls, self.places, known, n_projections, explicit, generator)
        with torch.no_grad():
            self.bytes_kept = sum(part.bytes_per_row for part in self.parts(rows[:1]))
        self.rows_a_pass = max(1, int(PASS_MEMORY * 2**20 // bytes_of_a_row(calls)))

    def parts(self, rows: Tensor) -> list[Part]:
        """Return what is kept of the gradients of rows, at most `rows_a_pass`: a part for each set of weights."""
        tracing, _, total = self._traced(rows)
        calls = tracing.calls
        edges = [call.output for call in calls]
        gradients = torch.autograd.grad(total, edges, allow_unused=True) if edges else ()
        parts = [slot.part(calls, gradients, self.places) for slot in self.slots]
        if self.unknown:
            parts.append(Features(torch.stack([self._row_gradient(row) for row in rows.split(1)])))
        return beside_each_other(parts)

    def _traced(self, rows: Tensor) -> tuple[Tracing, Tensor, Tensor]:
        """Return the uses of parameters in a forward pass, the scalar head of each row, and its sum."""
        with torch.enable_grad():
            with Tracing(self.weights.values()) as tracing:
                values = self._values(rows)
            total = values.sum()
        tracing.check_inputs()
        return tracing, values, total

    def _values(self, rows: Tensor) -> Tensor:
        """Return the scalar head of each row."""
        outputs = self._outputs(rows).flatten(1)
        if self.direction is not None:
            return nn.functional.linear(outputs, self.direction)[:, 0]
        if self.head is None and outputs.shape[1] != 1:
            raise invalid_parameter(
                "head",
                self.head,
                HEADS,
                f"network gives {outputs.shape[1]} outputs a row, and a kernel is of one: their 'sum', or one 'random' "
                "head on top of them.",
            )
        return outputs.sum(dim=1)

    def _outputs(self, rows: Tensor) -> Tensor:
        """Return what the network gives for rows, or for the images that they are."""
        x = rows
        if self.image_shape is not None:
            x = rows.reshape(len(rows), *self.image_shape).movedim(3, 1).contiguous()
        try:
            outputs = self.network(x)
        except InvalidParameterError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise InvalidParameterError(
                f"network fails on a tensor of shape {tuple(x.shape)}: {error}. It gets flat rows; with image_shape, "
                "(height, width[, channels]), it gets images with the channels first."
            ) from error
        if not isinstance(outputs, Tensor) or outputs.ndim == 0 or len(outputs) != len(rows):
            given = f"shape {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__
            raise InvalidParameterError(
                f"network gives {given} for {len(rows)} rows: it must give a tensor with as many rows."
            )
        return outputs[:, None] if outputs.ndim == 1 else outputs

    def _row_gradient(self, row: Tensor) -> Tensor:
        """Return the gradient by the parameters whose use is not known, for one row."""
        with torch.enable_grad():
            found = torch.autograd.grad(self._values(row).sum(), self.unknown, allow_unused=True)
        whole = (torch.zeros_like(w) if g is None else g for g, w in zip(found, self.unknown, strict=True))
        return torch.cat([g.flatten() for g in whole])

    def _try(self, rows: Tensor) -> tuple[list[Call], list[tuple[Place, Place]], set[int]]:
        """Return the calls for a few rows, where samples are in them, and the parameters whose use is not known."""
        few = rows[:TRIAL_ROWS].repeat(TRIAL_ROWS, 1)[:TRIAL_ROWS]
        alone, value, _ = self._traced(few[:1])
        together, values, _ = self._traced(few)
        unknown = set(together.unknown)
        if not torch.isfinite(values.detach()).all():
            raise NumericalError(
                "network gives NaN or infinite numbers: its weights or the rows are NaN, or too large."
            )
        if len(alone.calls) != len(together.calls) or not close(value.detach(), values.detach()[:1]):
            raise InvalidParameterError(
                "network gives a row something else where others are beside it, and a kernel is of two rows alone. "
                "network.eval() mends this for batch norm and dropout."
            )
        places = []
        for one, some in zip(alone.calls, together.calls, strict=True):
            found = places_of(one, some)
            if found is None:
                unknown |= {key[0] for key in some.uses}
            places.append(found or (Place(0, 1), Place(0, 1)))
        return together.calls, places, unknown

    def _warn_of_unknown(self) -> None:
        if not self.unknown:
            return
        owners = {
            id(weight): f"{name or 'network'} ({type(module).__name__})"
            for name, module in self.network.named_modules()
            for weight in module.parameters(recurse=False)
        }
        named = ", ".join(sorted({owners[id(weight)] for weight in self.unknown}))
        warn_user(
            f"how {named} uses its parameters is not known to the tangent kernel: their gradients are taken row by "
            "row, which is slow. Known are dense layers, convolutions, norms, embeddings, attention, and "
            "parameters that are added or multiplied.",
            NumericalWarning,
        )


def beside_each_other(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with all short ones, such as those of biases, in one: a product each would cost more."""
    short = [part.tensors[0] for part in parts if isinstance(part, Features) and part.tensors[0].shape[1] <= SHORT]
    others = [part for part in parts if not isinstance(part, Features) or part.tensors[0].shape[1] > SHORT]
    return [Features(torch.cat(short, dim=1)), *others] if short else others


def bytes_of_a_row(calls: Sequence[Call]) -> int:
    """Return about how much memory a row takes in a pass, from the calls of a trial."""
    numbers, patches = 1.0, 0
    for call in calls:
        numbers += COPIES * (call.input.numel() + call.shape.numel())
        for kind in call.uses.values():
            if isinstance(kind, Convolution):
                size = kind.kernel[0] * kind.kernel[1] * call.shape.numel() // call.shape[1] * call.input.shape[1]
                patches = max(patches, size)
    return int((numbers + patches) * calls[0].input.element_size() / TRIAL_ROWS) if calls else 1
