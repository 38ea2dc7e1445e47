"""What a model file may hold: dtypes, random number generators, and how much of all; anything else is refused."""

import re

import numpy as np
import torch
from scipy import sparse

from mercer.exceptions import ModelFileError

MAX_DEPTH = 100
"""Largest number of nested levels in a file: more than any model has, and far below Python's recursion limit."""

# The largest number of bytes that Python takes for a value (a number or a string) and for an object, apart from what is
# counted where these are made.
COST_OF_VALUE, COST_OF_OBJECT = 104, 1000

MOST_TEXT = 2**20
"""An array of strings with at most this many bytes, padding included, is JSON; a larger one is a tensor."""

NOT_RESTORED = ("checkpoint", "device")
"""Parameters that belong to one machine, a path that a fit would write to and a device. After loading they are None."""

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

# Types that may themselves be values, such as in a parameter dtype=np.float32.
NAMED_TYPES: dict[str, object] = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{f"numpy.{name}": getattr(np, name) for name in NUMPY_TYPES},
    **{f"torch.{name}": getattr(torch, name) for name in TENSOR_TYPES},
}

# Formats of sparse arrays: by rows and by columns.
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

# The name of the position in a generator's buffer, and its largest value. NumPy reads memory there without a check.
BUFFER_PLACES = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}


def is_array_type(dtype: np.dtype) -> bool:
    """Whether arrays of this dtype are stored as tensors: numbers, booleans, dates and durations."""
    return dtype.name in NUMPY_TYPES or bool(_TIMES.fullmatch(dtype.name))


def array_type(name: str) -> np.dtype:
    """Return the dtype of that name, or raise an error if arrays may not have it."""
    if name not in NUMPY_TYPES and not _TIMES.fullmatch(name):
        raise ModelFileError(f"is malformed: there are no arrays of type {name!r}")
    return np.dtype(name)
