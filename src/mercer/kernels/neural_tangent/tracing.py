"""Record which functions use the parameters of a running network, with their inputs and their outputs in the graph."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from mercer.exceptions import InvalidParameterError
from mercer.kernels.neural_tangent.convolution import Convolution, as_two, zeros_around
from mercer.kernels.neural_tangent.dense import Dense
from mercer.kernels.neural_tangent.direct import Lookup, Scale, Shift

Key = tuple[int, int]
"""The identity of a parameter, and the first of its rows that is used: attention uses three parts of one matrix."""


class Kind(Protocol):
    """How a function uses a parameter."""

    def seen(self, a: Tensor) -> Tensor:
        """Return the part of the function's input that the gradient depends on."""

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of the head by the parameter for each of n rows, flat.

        a is the input after `seen`, and g the gradient of the head by the function's output.
        """


class Call(NamedTuple):
    """A call of a function that used parameters.

    It holds the input and its version, the output's edge in torch's graph and its shape, and how each parameter was
    used.
    """

    input: Tensor
    version: int
    output: GradientEdge
    shape: torch.Size
    uses: dict[Key, Kind]


class Tracing(TorchFunctionMode):
    """A context in which every use of the given parameters is recorded.

    Functions are recorded rather than modules. A user's module that calls `torch.nn.functional.linear` is therefore
    recognized as well as `torch.nn.Linear`.

    Parameters
    ----------
    parameters : iterable of tensors

    Attributes
    ----------
    calls : list of Call
    unknown : set of int
        The identities of the parameters that were used by a function that is not supported here.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        super().__init__()
        self.tracked = {id(parameter) for parameter in parameters}
        self.calls: list[Call] = []
        self.unknown: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.batch_norm:
            _batch_norm(*args, **kwargs)  # raises an error in training mode, even without parameters
        touched = [value for value in tensors_in((args, kwargs)) if id(value) in self.tracked]
        if not touched:
            return func(*args, **kwargs)
        if func is functional.multi_head_attention_forward:
            from mercer.kernels.neural_tangent.attention import attend

            done = attend(self, *args, **kwargs)
            if done is not None:
                return done
        output = func(*args, **kwargs)
        call = FUNCTIONS[func](*args, **kwargs) if func in FUNCTIONS else None
        if call is not None and isinstance(output, Tensor):
            self.record(call[0], output, {(id(p), 0): kind for p, kind in call[1] if p is not None})
        elif any(value.requires_grad for value in tensors_in(output)):
            # A result that requires no gradient, such as the parameter's shape, does not matter.
            self.unknown |= {id(value) for value in touched}
        return output

    def record(self, input: Tensor, output: Tensor, uses: dict[Key, Kind]) -> None:
        """Record a call with its uses of tracked parameters, if the output requires a gradient."""
        kept = {key: kind for key, kind in uses.items() if key[0] in self.tracked}
        if kept and output.requires_grad:
            self.calls.append(Call(input, input._version, get_gradient_edge(output), output.shape, kept))

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None, rows: slice = slice(None)) -> Tensor:
        """Return W x + b for some rows of W and b, and record the call."""
        first = rows.start or 0
        output = functional.linear(x, weight[rows], None if bias is None else bias[rows])
        uses: dict[Key, Kind] = {(id(weight), first): Dense()}
        if bias is not None:
            uses[id(bias), first] = Shift((output.shape[-1],))
        self.record(x, output, uses)
        return output

    def shifted(self, x: Tensor, bias: Tensor, rows: slice) -> Tensor:
        """Return x + b for some rows of b, and record the call."""
        output = x + bias[rows]
        self.record(x, output, {(id(bias), rows.start or 0): Shift((output.shape[-1],))})
        return output

    def check_inputs(self) -> None:
        """Raise an error if an input was overwritten after its use: gradients would be computed from wrong numbers."""
        if any(call.input._version != call.version for call in self.calls):
            raise InvalidParameterError(
                "network overwrites the input of a layer after the layer has used it. Let it write its result "
                "elsewhere (inplace=False, x = x + y instead of x += y)."
            )


def tensors_in(values: Any) -> Iterable[Tensor]:
    """Yield the tensors in nested tuples, lists and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from tensors_in(value)


# ---- the supported functions: each returns the input and the kind of use of each parameter, or None if unknown ------

Known = tuple[Tensor, list[tuple[Tensor | None, Kind]]] | None


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Known:
    return input, [(weight, Dense()), (bias, Shift((weight.shape[0],)))]


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Known:
    if input.ndim != weight.ndim:
        return None  # a single image without a batch axis
    kernel, steps, spread = as_two(tuple(weight.shape[2:])), _pair(stride, weight, 1), _pair(dilation, weight, 1)
    around = zeros_around(padding if isinstance(padding, str) else _pair(padding, weight, 0), kernel, spread)
    kind = Convolution(kernel, steps, around, spread, groups)
    return input, [(weight, kind), (bias, Shift((weight.shape[0], *(1,) * (weight.ndim - 2))))]


def _pair(value: Any, weight: Tensor, of_height: int) -> tuple[int, int]:
    """Return an option of a convolution as (height, width); in one dimension the height is `of_height`."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if weight.ndim == 3:
        return of_height, values[0]
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Known:
    if training or running_mean is None:
        raise InvalidParameterError(
            "network has batch norm in training mode, in which the gradient of a row depends on the other rows: call "
            "network.eval() first."
        )
    shape = (input.shape[1], *(1,) * (input.ndim - 2))
    normalize = partial(functional.batch_norm, running_mean=running_mean, running_var=running_var, eps=eps)
    return input, [(weight, Scale(shape, normalize)), (bias, Shift(shape))]


def _layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Known:
    shape = tuple(normalized_shape)
    normalize = partial(functional.layer_norm, normalized_shape=shape, eps=eps)
    return input, [(weight, Scale(shape, normalize)), (bias, Shift(shape))]


def _group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Known:
    shape = (input.shape[1], *(1,) * (input.ndim - 2))
    normalize = partial(functional.group_norm, num_groups=num_groups, eps=eps)
    return input, [(weight, Scale(shape, normalize)), (bias, Shift(shape))]


def _embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Known:
    if max_norm is not None or scale_grad_by_freq:
        return None
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return input, [(weight, Lookup(weight.shape[0], padding))]


def _added(left: Any, right: Any, **options: Any) -> Known:
    parameter, other = _operands(left, right)
    return None if options or other is None else (other, [(parameter, Shift(_without_samples(parameter)))])


def _multiplied(left: Any, right: Any, **options: Any) -> Known:
    parameter, other = _operands(left, right)
    return None if options or other is None else (other, [(parameter, Scale(_without_samples(parameter), _as_it_is))])


def _operands(left: Any, right: Any) -> tuple[Tensor, Tensor | None]:
    """Return the parameter and the other operand, or None for the latter unless the parameter broadcasts to it."""
    parameter, other = (left, right) if isinstance(left, nn.Parameter) else (right, left)
    if isinstance(other, nn.Parameter) or not isinstance(other, Tensor):
        return parameter, None
    return parameter, other if torch.broadcast_shapes(parameter.shape, other.shape) == other.shape else None


def _without_samples(parameter: Tensor) -> tuple[int, ...]:
    """Return the shape of a parameter without leading ones, which stand for samples and positions."""
    shape = tuple(parameter.shape)
    while shape and shape[0] == 1:
        shape = shape[1:]
    return shape


def _as_it_is(a: Tensor) -> Tensor:
    return a


FUNCTIONS: dict[Any, Callable[..., Known]] = {
    functional.linear: _linear,
    functional.conv1d: _convolution,
    functional.conv2d: _convolution,
    functional.batch_norm: _batch_norm,
    functional.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
    functional.embedding: _embedding,
    **dict.fromkeys((torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__), _added),
    **dict.fromkeys((torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__), _multiplied),
}
