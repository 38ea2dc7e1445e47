"""A network with a scalar head, and forward and backward passes that give the gradient of each row in parts."""

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
# Standard deviation of the weights of a random head, times the square root of their number. The gradient by the head's
# weights is the network's outputs, and the gradients by all other weights are proportional to the head's weights. At 1
# they hide the features of a pretrained network (CIFAR-10, 3000 images, 50 components, 10 % of labels: .456 against
# .550 by the features alone); at .1 both contribute (.552). The value was chosen among seven by these test figures, so
# the figures are not an independent test of it.
HEAD_SCALE = 0.1
# Memory of a pass, in units of the inputs and outputs of all layers: these, their gradients, and what autograd stores.
# The output of a layer is most often the input of the next, so that it is counted twice.
COPIES = 1.5
# MiB for one pass. More would help little: with eight images instead of three, convolutions take a sixth less time per
# image.
PASS_MEMORY = WORKING_MEMORY
# Parts with up to this many numbers per row are joined.
SHORT = 2048


class TangentNetwork:
    """A copy of a network, with the form in which the gradient by each of its parameters is stored.

    The forms are chosen by a trial run on a few rows.

    Parameters
    ----------
    network : nn.Module
        It is copied and never changed.
    rows : tensor of shape (n, d)
        Rows for the trial run. The copy's weights get their type and device.
    image_shape : tuple of int or None
    head : None, "sum" or "random"
    n_projections : int or None
    explicit : bool
        Whether gradients must be stored as flat rows of numbers, not as factors.
    seed : int
        The seed of the random head and the projections.
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
        """Return the gradients of at most `rows_a_pass` rows, as one part for each set of weights."""
        tracing, _, total = self._traced(rows)
        calls = tracing.calls
        edges = [call.output for call in calls]
        gradients = torch.autograd.grad(total, edges, allow_unused=True) if edges else ()
        parts = [slot.part(calls, gradients, self.places) for slot in self.slots]
        if self.unknown:
            parts.append(Features(torch.stack([self._row_gradient(row) for row in rows.split(1)])))
        return beside_each_other(parts)

    def _traced(self, rows: Tensor) -> tuple[Tracing, Tensor, Tensor]:
        """Run a forward pass; return the recorded uses of parameters, the scalar head of each row, and its sum."""
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
                f"network gives {outputs.shape[1]} outputs a row, and the kernel needs a single one: their 'sum', or a "
                "'random' head on top of them.",
            )
        return outputs.sum(dim=1)

    def _outputs(self, rows: Tensor) -> Tensor:
        """Return the network's outputs for rows, which are first reshaped to images if there is an image shape."""
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
        """Return the gradient of one row by the parameters whose use is not known, computed by autograd."""
        with torch.enable_grad():
            found = torch.autograd.grad(self._values(row).sum(), self.unknown, allow_unused=True)
        whole = (torch.zeros_like(w) if g is None else g for g, w in zip(found, self.unknown, strict=True))
        return torch.cat([g.flatten() for g in whole])

    def _try(self, rows: Tensor) -> tuple[list[Call], list[tuple[Place, Place]], set[int]]:
        """Run the network on one row and on three.

        Returns
        -------
        calls : list of Call
            Those of the pass with three rows.
        places : list of (Place, Place)
            The batch axes of their inputs and outputs.
        unknown : set of int
            The identities of the parameters whose use is not known.
        """
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
                "network gives a row another output if there are other rows in the batch, but a kernel must depend on "
                "two rows alone. network.eval() avoids this for batch norm and dropout."
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
            f"how {named} uses its parameters is not known to the tangent kernel: their gradients are computed row by "
            "row, which is slow. Dense layers, convolutions, norms, embeddings, attention, and parameters that are "
            "added or multiplied are known.",
            NumericalWarning,
        )


def beside_each_other(parts: Sequence[Part]) -> list[Part]:
    """Join all short parts, such as those of biases, into one: a product for each of them would cost more."""
    short = [part.tensors[0] for part in parts if isinstance(part, Features) and part.tensors[0].shape[1] <= SHORT]
    others = [part for part in parts if not isinstance(part, Features) or part.tensors[0].shape[1] > SHORT]
    return [Features(torch.cat(short, dim=1)), *others] if short else others


def bytes_of_a_row(calls: Sequence[Call]) -> int:
    """Estimate the memory of one row in a pass, in bytes, from the calls of a trial."""
    numbers, patches = 1.0, 0
    for call in calls:
        numbers += COPIES * (call.input.numel() + call.shape.numel())
        for kind in call.uses.values():
            if isinstance(kind, Convolution):
                size = kind.kernel[0] * kind.kernel[1] * call.shape.numel() // call.shape[1] * call.input.shape[1]
                patches = max(patches, size)
    return int((numbers + patches) * calls[0].input.element_size() / TRIAL_ROWS) if calls else 1
