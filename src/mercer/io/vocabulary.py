"""What a model file may name: types, generators of random numbers, and how much; all else is refused."""

import re

import numpy as np
import torch
from scipy import sparse

from mercer.exceptions import ModelFileError

MAX_DEPTH = 100
"""Levels of nesting that are saved and loaded: far from Python's recursion limit, more than models have."""

# Bytes that Python takes for a value at the most, beside what is counted where it is made: a number or a string, and an
# object.
COST_OF_VALUE, COST_OF_OBJECT = 104, 1000

MOST_TEXT = 2**20
"""Bytes of an array of strings, padding included, that are written as JSON; of more the characters are a tensor."""

NOT_RESTORED = ("checkpoint", "device")
"""Parameters that are of one machine: a path that a later fit would write to, and where it computes. They come back as
None."""

# The name that NumPy and torch share -> the name in safetensors.
TENSOR_TYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}

NUMPY_TYPES = [name for name in TENSOR_TYPES if not name.startswith(("bfloat", "float8"))]

_TIMES = re.compile(r"(datetime64|timedelta64)(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")

# Types that are themselves values, such as a parameter dtype=np.float32.
NAMED_TYPES: dict[str, object] = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{f"numpy.{name}": getattr(np, name) for name in NUMPY_TYPES},
    **{f"torch.{name}": getattr(torch, name) for name in TENSOR_TYPES},
}

# Sparse arrays by rows and by columns.
SPARSE_FORMATS: dict[str, type] = {"csr": sparse.csr_array, "csc": sparse.csc_array}
SPARSE_TYPES = tuple(SPARSE_FORMATS.values())

BIT_GENERATORS: dict[str, type[np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}

# Places in a generator's buffer, by the name in its state. NumPy trusts them, and reads memory at them.
BUFFER_PLACES = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}


def is_array_type(dtype: np.dtype) -> bool:
    """Whether arrays of this type are kept as tensors: numbers, booleans, dates and durations."""
    return dtype.name in NUMPY_TYPES or bool(_TIMES.fullmatch(dtype.name))


def array_type(name: str) -> np.dtype:
    """Return the type of arrays of that name."""
    if name not in NUMPY_TYPES and not _TIMES.fullmatch(name):
        raise ModelFileError(f"is malformed: there are no arrays of type {name!r}")
    return np.dtype(name)
