"""Make a model from a JSON document and tensors: only listed classes are instantiated, and no name is trusted."""

import math
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.exceptions import ModelFileError, escaped, shortened, shown
from mercer.io.classes import find_class, is_attribute, result_fields
from mercer.io.networks import rebuilt, with_weights
from mercer.io.vocabulary import (
    BIT_GENERATORS,
    BUFFER_PLACES,
    COST_OF_OBJECT,
    COST_OF_VALUE,
    MAX_DEPTH,
    NAMED_TYPES,
    NOT_RESTORED,
    SPARSE_FORMATS,
    array_type,
)

# Bytes that are counted for a random number generator.
COST_OF_GENERATOR = 8000


@dataclass
class Source:
    """What the document refers to: the tensors of the file, and the objects that the user gives to `load`.

    `allowance` is how many more bytes may be taken for decoded values, not counting the tensors. It is limited because
    a few bytes of a file can ask for many bytes of memory, by the width of strings or by naming a tensor repeatedly.
    """

    tensors: dict[str, Tensor]
    given: dict[str, Any]
    allowance: float = math.inf
    shared: dict[tuple[str, str], Tensor] = field(default_factory=dict)

    def take(self, n_bytes: float) -> None:
        """Count memory that is about to be taken, and raise an error if it is too much for a file of this size."""
        self.allowance -= n_bytes
        if self.allowance < 0:
            raise ModelFileError("is malformed: it asks for far more memory than a file of its size should")


def decode(value: Any, source: Source, depth: int = 0) -> Any:
    """Return the value that `encode` was given; `depth` is its number of levels below the model.

    Anything that is wrong in the file causes an exception. It is a ModelFileError if there is something helpful to
    say, and the caller turns all other exceptions into a ModelFileError.
    """
    if depth > MAX_DEPTH:
        raise ModelFileError(f"is nested deeper than {MAX_DEPTH} levels")
    source.take(COST_OF_VALUE)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [decode(item, source, depth + 1) for item in value]
    ((tag, content),) = value.items()
    if tag not in DECODERS:
        raise ModelFileError(f"is malformed: it has a value of the unknown kind {shown(tag)}")
    return DECODERS[tag](content, source, depth)


def decode_int(content: str, source: Source, depth: int) -> int:
    return int(content, 16)


def decode_float(content: str, source: Source, depth: int) -> float:
    return struct.unpack(">d", bytes.fromhex(content))[0]


def decode_tuple(content: list, source: Source, depth: int) -> tuple:
    return tuple(decode(content, source, depth))


def decode_slice(content: list, source: Source, depth: int) -> slice:
    start, stop, step = decode(content, source, depth)
    return slice(start, stop, step)


def decode_dict(content: list, source: Source, depth: int) -> dict:
    return {decode(key, source, depth + 1): decode(item, source, depth + 1) for key, item in content}


def decode_tensor(content: dict, source: Source, depth: int) -> Tensor:
    # A tensor that several parts of a model share is stored once, and is shared again.
    name, order = content["name"], content["order"]
    if (name, order) not in source.shared:
        # The copy has memory that is aligned by torch: products of arrays that are not aligned may differ in the last
        # digits. The original is released.
        tensor = source.tensors.pop(name).clone()
        source.shared[name, order] = tensor.permute(*reversed(range(tensor.ndim))) if order == "F" else tensor
    return source.shared[name, order]


def decode_array(content: dict, source: Source, depth: int) -> np.ndarray:
    array = decode_tensor(content, source, depth).numpy()
    dtype = array_type(content["dtype"])
    if array.dtype != (np.int64 if dtype.kind in "mM" else dtype):
        raise ModelFileError(f"is malformed: an array of type {dtype} is stored as {array.dtype}")
    return array.view(dtype)


def decode_sparse(content: dict, source: Source, depth: int) -> Any:
    data, indices, indptr = (decode(content[name], source, depth + 1) for name in ("data", "indices", "indptr"))
    source.take(3 * (data.nbytes + indices.nbytes + indptr.nbytes))  # the checks make copies
    matrix = SPARSE_FORMATS[content["format"]]((data, indices, indptr), shape=tuple(content["shape"]))
    # SciPy would read memory at the indices without checking them.
    matrix.check_format(full_check=True)
    return matrix


def decode_text(content: dict, source: Source, depth: int) -> np.ndarray:
    width, items = content["width"], content["items"]
    fits = all(isinstance(item, str) and len(item) <= width for item in items)
    if not fits:
        raise ModelFileError(f"is malformed: an array of strings does not have the width {width}")
    source.take(4 * width * len(items))
    return np.array(items, dtype=f"U{width:d}").reshape(content["shape"])


def decode_characters(content: dict, source: Source, depth: int) -> np.ndarray:
    codes = np.ascontiguousarray(decode_tensor(content, source, depth).numpy())
    if codes.ndim != 2 or codes.dtype != np.uint32 or not codes.shape[1] or codes.max(initial=0) > sys.maxunicode:
        raise ModelFileError("is malformed: an array of strings has no characters, or some that do not exist")
    return codes.view(f"U{codes.shape[1]}").reshape(content["shape"])


def decode_objects(content: dict, source: Source, depth: int) -> np.ndarray:
    items = decode(content["items"], source, depth)
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item  # one by one: NumPy would turn lists of equal length into one array
    return array.reshape(content["shape"])


def decode_scalar(content: list, source: Source, depth: int) -> np.generic:
    name, text = content
    if name == "str":
        return np.str_(text)
    dtype = array_type(name)
    (scalar,) = np.frombuffer(bytes.fromhex(text), dtype=dtype.newbyteorder("<")).astype(dtype)
    return scalar


def decode_dtype(content: str, source: Source, depth: int) -> np.dtype:
    return array_type(content)


def decode_type(content: str, source: Source, depth: int) -> Any:
    return NAMED_TYPES[content]


def decode_device(content: str, source: Source, depth: int) -> torch.device:
    source.take(COST_OF_OBJECT)
    return torch.device(content)


def decode_given(content: str, source: Source, depth: int) -> Any:
    return source.given[content]


def decode_random_state(content: dict, source: Source, depth: int) -> np.random.RandomState:
    source.take(COST_OF_GENERATOR)
    state = check_generator_state(decode(content, source, depth))
    random_state = np.random.RandomState(BIT_GENERATORS[state["bit_generator"]](0))
    random_state.set_state(state)
    return random_state


def decode_generator(content: list, source: Source, depth: int) -> np.random.Generator:
    source.take(COST_OF_GENERATOR)
    state, seeds = (decode(part, source, depth) for part in content)
    check_generator_state(state)
    if not 0 < seeds["pool_size"] <= 1024:
        raise ModelFileError(f"is malformed: a pool of {seeds['pool_size']} seeds")
    bit_generator = BIT_GENERATORS[state["bit_generator"]](np.random.SeedSequence(**seeds))
    bit_generator.state = state
    return np.random.Generator(bit_generator)


def check_generator_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a bit generator after checking that its position in its buffer is valid."""
    name, size = BUFFER_PLACES.get(state["bit_generator"], ("", 0))
    for place in (state.get(name, 0), state["state"].get(name, 0)):
        if type(place) is not int or not 0 <= place <= size:
            raise ModelFileError(f"is malformed: a generator of random numbers is at place {place} of {size}")
    return state


def decode_object(content: dict, source: Source, depth: int) -> Any:
    """Make an object of a listed class with its constructor, then set its other attributes."""
    source.take(COST_OF_OBJECT)
    kind = find_class(content["class"])
    params, state = content["params"], content["state"]
    unknown = sorted(params.keys() - set(kind._get_param_names()))  # type: ignore[attr-defined]
    if unknown:
        named = escaped(shortened(", ".join(unknown)))
        raise ModelFileError(f"has {named} for {kind.__name__}, which has no such parameter")
    for name in state:
        if not is_attribute(kind, name) or name in kind._get_param_names():  # type: ignore[attr-defined]
            raise ModelFileError(f"has {shown(name)} for {kind.__name__}, which is not allowed as an attribute")
    model = kind(**restored(params, source, depth))
    # Not by setattr, which may run code of the class: the attributes are data.
    vars(model).update({name: decode(item, source, depth + 1) for name, item in state.items()})
    return model


def decode_result(content: dict, source: Source, depth: int) -> Any:
    """Make a listed named tuple or dataclass from its fields."""
    source.take(COST_OF_OBJECT)
    kind, values = find_class(content["class"]), content["fields"]
    if set(values) != set(result_fields(kind)):
        raise ModelFileError(f"has the fields {shortened(', '.join(values))} for {kind.__name__}, which has others")
    return kind(**restored(values, source, depth))


def restored(values: dict, source: Source, depth: int) -> dict[str, Any]:
    """Decode parameters or fields, except those by which a file would decide where this machine writes or computes."""
    return {name: None if name in NOT_RESTORED else decode(item, source, depth + 1) for name, item in values.items()}


def decode_network(content: dict, source: Source, depth: int) -> Any:
    """Rebuild one of Mercer's networks, or take the network that the user gave; both get the weights of the file."""
    weights = decode(content["weights"], source, depth + 1)
    if "given" in content:
        return with_weights(source.given[content["given"]], weights, content["given"])
    settings, modes = (decode(content[name], source, depth + 1) for name in ("settings", "modes"))
    return rebuilt(content["class"], settings, weights, modes)


DECODERS: dict[str, Callable[[Any, Source, int], Any]] = {
    "RandomState": decode_random_state,
    "Generator": decode_generator,
    "array": decode_array,
    "characters": decode_characters,
    "device": decode_device,
    "dict": decode_dict,
    "dtype": decode_dtype,
    "float": decode_float,
    "given": decode_given,
    "int": decode_int,
    "network": decode_network,
    "object": decode_object,
    "objects": decode_objects,
    "result": decode_result,
    "scalar": decode_scalar,
    "slice": decode_slice,
    "sparse": decode_sparse,
    "tensor": decode_tensor,
    "text": decode_text,
    "tuple": decode_tuple,
    "type": decode_type,
}
