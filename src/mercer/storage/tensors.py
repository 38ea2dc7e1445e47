"""The safetensors format, read by hand: each byte has its place, and memory is taken for what is there, not for claims.

A file is the length of its header in eight bytes, the header in JSON, then the tensors one after the other. The header
holds texts under "__metadata__", and for every tensor its type, its shape and its place.
"""

import json
from math import prod
from typing import Any

import torch
from torch import Tensor

from mercer.exceptions import ModelFileError, shown

MAX_HEADER = 100_000_000
"""Bytes of header that safetensors reads."""

N_FIRST = 9
"""Bytes that tell a file of this format: the length of the header, and the brace that it begins with."""

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

# What Python takes, at the most, for what one of these characters begins in JSON: a dictionary with an entry, a list
# with one, a string beside others. Measured with Python 3.11 to 3.13.
COST = {"{": 300, "[": 104, ",": 80}
# Bytes that the objects of one file may take beside its own size, and the multiple of its size.
BASE, TIMES = 48 * 2**20, 2


def allowance(size: int) -> int:
    """Return how many bytes the objects made from a file of that size may take.

    With the file itself and a copy of its tensors this is 64 MiB and four times its size, whatever its header says.
    """
    return BASE + TIMES * size


def json_cost(text: str) -> int:
    """Return how many bytes the objects in a JSON text may take, at the most, from the characters that begin them."""
    return sum(cost * text.count(character) for character, cost in COST.items())


def is_beginning(first: bytes, size: int) -> bool:
    """Whether the first N_FIRST bytes of a file of that size may be those of safetensors."""
    length = int.from_bytes(first[:8], "little")
    return len(first) == N_FIRST and first[8:] == b"{" and length <= MAX_HEADER and 8 + length <= size


def unpacked(data: bytearray) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the texts and the tensors of a file's content; the tensors share its memory.

    Raises
    ------
    ModelFileError
        If a place, a shape or a type does not fit the file.
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
    """Refuse NaN and Infinity, which are not JSON."""
    raise ModelFileError(f"is malformed: {name} is not JSON")


def _place(name: str, entry: Any) -> tuple[torch.dtype, list[int], int, int]:
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
    if start == stop:
        return torch.empty(shape, dtype=dtype)
    if dtype == torch.bool and bool((torch.frombuffer(body[start:stop], dtype=torch.uint8) > 1).any()):
        raise ModelFileError(f"is malformed: the tensor {shown(name)} has booleans that are neither true nor false")
    return torch.frombuffer(body[start:stop], dtype=dtype).reshape(shape)
