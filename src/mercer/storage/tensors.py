"""A strict reader of the safetensors format: each byte is accounted for, and memory depends on the size of the file.

A file consists of the length of its header in eight bytes, the header in JSON, and the tensors one after another. The
header has texts under "__metadata__", and for every tensor its type, its shape and the place of its bytes. What a
header claims is never enough to allocate memory.
"""

import json
from math import prod
from typing import Any

import torch
from torch import Tensor

from mercer.exceptions import ModelFileError, shown

MAX_HEADER = 100_000_000
"""The longest header, in bytes; the safetensors library has the same limit."""

N_FIRST = 9
"""The number of bytes by which the format is recognized: the length of the header, and its opening brace."""

TYPES = {
    "BOOL": torch.bool,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "U8": torch.uint8,
    "U16": torch.uint16,
    "U32": torch.uint32,
    "U64": torch.uint64,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
    "C64": torch.complex64,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
}

# The most bytes that Python needs for the object that each of these characters begins in JSON: a dictionary with one
# entry, a list with one entry, and a further string. Measured with Python 3.11 to 3.13.
COST = {"{": 300, "[": 104, ",": 80}
# The objects made from a file may take BASE bytes plus TIMES the size of the file.
BASE, TIMES = 48 * 2**20, 2


def allowance(size: int) -> int:
    """Return how many bytes the objects made from a file of that size may take.

    Together with the file itself and a copy of its tensors, this is 64 MiB plus four times the size of the file,
    whatever its header says.
    """
    return BASE + TIMES * size


def json_cost(text: str) -> int:
    """Return an upper bound on the bytes that the objects of a JSON text take, from the characters that begin them."""
    return sum(cost * text.count(character) for character, cost in COST.items())


def is_beginning(first: bytes, size: int) -> bool:
    """Whether the first N_FIRST bytes of a file of that size can be those of a safetensors file."""
    length = int.from_bytes(first[:8], "little")
    return len(first) == N_FIRST and first[8:] == b"{" and length <= MAX_HEADER and 8 + length <= size


def unpacked(data: bytearray) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the texts and the tensors in the content of a file; the tensors share its memory.

    Raises
    ------
    ModelFileError
        If the header, or the place, shape or type of a tensor, does not fit the file.
    """
    length = int.from_bytes(data[:8], "little")
    if not is_beginning(bytes(data[:N_FIRST]), len(data)):
        raise ModelFileError("is malformed: its header is longer than the file")
    try:
        text = str(memoryview(data)[8 : 8 + length], "ascii")
    except UnicodeDecodeError:
        raise ModelFileError("is malformed: its header has characters that are not ASCII") from None
    if json_cost(text) > allowance(len(data)):
        raise ModelFileError("is malformed: its header has far more parts than a file of its size should")
    header = json.loads(text, parse_constant=no_constant)
    if not isinstance(header, dict):
        raise ModelFileError("is malformed: its header is no object")
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise ModelFileError("is malformed: its metadata are not texts")
    body = memoryview(data)[8 + length :]
    places = {name: _place(name, entry) for name, entry in header.items()}
    end = 0
    for start, stop in sorted(place[2:] for place in places.values()):
        if start != end:
            raise ModelFileError("is malformed: its tensors do not lie one after the other")
        end = stop
    if end != len(body):
        raise ModelFileError("is malformed: its tensors do not fill the file")
    return texts, {name: _tensor(name, body, *place) for name, place in places.items()}


def no_constant(name: str) -> None:
    """Raise for NaN and Infinity, which Python's parser would accept although they are not JSON."""
    raise ModelFileError(f"is malformed: {name} is not JSON")


def _place(name: str, entry: Any) -> tuple[torch.dtype, list[int], int, int]:
    """Return the type and the shape of a tensor, and where its bytes begin and end."""
    try:
        dtype, shape, (start, stop) = TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        numbers = [*shape, start, stop]
        fits = all(type(number) is int and 0 <= number < 2**48 for number in numbers)
    except (TypeError, KeyError, ValueError):
        fits = False
    if not fits or prod(shape) * dtype.itemsize != stop - start or len(shape) > 32:
        raise ModelFileError(f"is malformed: the tensor {shown(name)} has no place that fits its type and shape")
    return dtype, shape, start, stop


def _tensor(name: str, body: memoryview, dtype: torch.dtype, shape: list[int], start: int, stop: int) -> Tensor:
    """Return the tensor whose bytes are body[start:stop], without copying them."""
    if start == stop:
        return torch.empty(shape, dtype=dtype)
    if dtype == torch.bool and bool((torch.frombuffer(body[start:stop], dtype=torch.uint8) > 1).any()):
        raise ModelFileError(f"is malformed: the tensor {shown(name)} has booleans that are neither true nor false")
    return torch.frombuffer(body[start:stop], dtype=dtype).reshape(shape)
