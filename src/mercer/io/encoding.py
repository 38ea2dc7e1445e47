"""Turn a model into a JSON document and tensors.

JSON's null, booleans, numbers, strings and arrays stand for None, bool, int, float, str and list. Every other value is
a JSON object with one key, which says what it is: `{"tuple": [1, 2]}`.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.io.classes import class_name, is_attribute, is_estimator, result_fields
from mercer.io.container import Stored
from mercer.io.networks import modes_of, name_of
from mercer.io.vocabulary import (
    BIT_GENERATORS,
    MAX_DEPTH,
    MOST_TEXT,
    NAMED_TYPES,
    NOT_RESTORED,
    NUMPY_TYPES,
    SPARSE_TYPES,
    TENSOR_TYPES,
    is_array_type,
)

JSON = Any
Path = tuple[str, ...]

# Attributes that scikit-learn's callbacks leave on an estimator: they belong to a running fit, not to the model.
CALLBACK_INTERNALS = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)

# Larger JSON numbers lose digits in most readers.
LARGEST_PLAIN_INT = 2**53

KEY_TYPES = (type(None), bool, int, float, str, tuple, np.generic)

_TYPE_NAMES = {kind: name for name, kind in NAMED_TYPES.items()}


@dataclass
class Parts:
    """What the document refers to: the tensors, and the user's own objects, which are not saved."""

    tensors: dict[str, Stored] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    known: dict[Any, tuple[np.ndarray, dict[str, str]]] = field(default_factory=dict)

    def store(self, dtype: str, array: np.ndarray) -> dict[str, str]:
        """Add an array to the file, little-endian; return its name there and its order in memory.

        `dtype` may be one that NumPy lacks; the array then holds its bits. The order matters: 96 % of the products with
        a random matrix of up to 80 columns change in the last digits if the order of the matrix changes. An array that
        several parts of a model share is stored once.
        """
        memory_of = (array.__array_interface__["data"][0], array.shape, array.strides, dtype)
        if memory_of in self.known and array.size:
            return self.known[memory_of][1]
        name = str(len(self.tensors))
        transposed = array.ndim > 1 and abs(array.strides[0]) < abs(array.strides[-1])
        # The array itself is kept too, so that its memory is not reused by another one while the model is encoded.
        self.known[memory_of] = (array, {"name": name, "order": "F" if transposed else "C"})
        array = array.T if transposed else array
        memory = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C").reshape(-1)
        self.tensors[name] = Stored(TENSOR_TYPES[dtype], array.shape, memory)
        return self.known[memory_of][1]


def encode(value: Any, path: Path, parts: Parts, replaceable: bool = False) -> JSON:
    """Return `value` as JSON; its tensors are added to `parts`.

    Parameters
    ----------
    value : any
    path : tuple of str
        The names that lead from the model to the value, one for each level.
    parts : Parts
        Collects the tensors and the user's objects.
    replaceable : bool
        Whether the value is in a constructor parameter, so that the user can give it to `load` again.
    """
    if len(path) > MAX_DEPTH:
        where = ".".join(path[:3])
        raise TypeError(f"{where}... is nested deeper than {MAX_DEPTH} levels, or contains itself.")
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) <= LARGEST_PLAIN_INT else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if kind in (list, tuple, slice):
        items = [value.start, value.stop, value.step] if kind is slice else value
        encoded = [encode(item, (*path, str(i)), parts, replaceable) for i, item in enumerate(items)]
        return encoded if kind is list else {kind.__name__: encoded}
    if kind is dict:
        return {"dict": [encode_entry(key, item, path, parts, replaceable) for key, item in value.items()]}
    if kind in (np.ndarray, np.memmap):
        return encode_array(value, path, parts)
    if isinstance(value, SPARSE_TYPES):
        return encode_sparse(value, path, parts)
    if isinstance(value, np.generic):
        return encode_scalar(value, path)
    if kind in (Tensor, torch.nn.Parameter):
        return encode_tensor(value, path, parts)
    if kind in (np.random.RandomState, np.random.Generator):
        return encode_generator(value, path, parts)
    if isinstance(value, np.dtype) and is_array_type(value):
        return {"dtype": value.name}
    if isinstance(value, (type, torch.dtype)) and value in _TYPE_NAMES:
        return {"type": _TYPE_NAMES[value]}
    if kind is torch.device:
        return {"device": str(value)}
    name = class_name(kind)
    if name is not None:
        return encode_object(value, name, path, parts)
    if isinstance(value, torch.nn.Module):
        return encode_network(value, path, parts, replaceable)
    if callable(value) and not isinstance(value, BaseEstimator):
        return encode_given(value, path, parts, replaceable)
    raise unsavable(path, value)


def unsavable(path: Path, value: Any, hint: str = "") -> TypeError:
    """Return the error for a value that cannot be saved."""
    kind = type(value)
    if not hint and isinstance(value, BaseEstimator):
        hint = "Only estimators, kernels and metrics that Mercer itself defines can be saved."
    elif not hint and not path:
        hint = "model must be an estimator, a kernel or a metric of Mercer."
    where, what = ".".join(path) or "model", f"{kind.__module__}.{kind.__qualname__}"
    return TypeError(f"{where} is a {what}, which cannot be saved. {hint}".rstrip())


def encode_entry(key: Any, item: Any, path: Path, parts: Parts, replaceable: bool) -> JSON:
    """Return an entry of a dict; keys are scalars or tuples of scalars, which hash the same after loading."""
    step = (*path, str(key))
    if not isinstance(key, KEY_TYPES):
        raise unsavable(step, key, "The keys of a dict must be None, numbers, strings or tuples of these.")
    return [encode(key, step, parts), encode(item, step, parts, replaceable)]


def encode_object(value: Any, name: str, path: Path, parts: Parts) -> JSON:
    """Return an estimator as its parameters and its other attributes, or a result as its fields."""
    kind = type(value)
    if not is_estimator(kind):
        fields = {key: encode(getattr(value, key), (*path, key), parts) for key in result_fields(kind)}
        return {"result": {"class": name, "fields": fields}}
    given = value.get_params(deep=False)
    # Parameters first: a callable that a fitted attribute holds as well then gets the name of the parameter.
    params = {
        key: None if key in NOT_RESTORED else encode(item, (*path, key), parts, replaceable=True)
        for key, item in given.items()
    }
    state = {}
    for key, item in vars(value).items():
        if key in given or key in CALLBACK_INTERNALS:
            continue
        if not is_attribute(kind, key):
            raise unsavable((*path, key), item, f"The name hides a method or property of {kind.__name__}.")
        state[key] = encode(item, (*path, key), parts)
    return {"object": {"class": name, "params": params, "state": state}}


def encode_given(value: Any, path: Path, parts: Parts, replaceable: bool) -> JSON:
    """Return the name, in scikit-learn's notation, under which `load` asks for a user's callable."""
    for name, given in parts.given.items():
        if given is value:
            return {"given": name}
    name = "__".join(path)
    if not replaceable:
        raise unsavable(path, value, "Callables can be handed back at load as parameters only.")
    if name in parts.given:
        raise unsavable(path, value, f"It would be handed back as {name!r}, and so would another object.")
    parts.given[name] = value
    return {"given": name}


def encode_network(value: torch.nn.Module, path: Path, parts: Parts, replaceable: bool) -> JSON:
    """Return a network as its weights, with its class and settings or with the name under which `load` asks for it."""
    name = name_of(value)
    built = (
        encode_given(value, path, parts, replaceable)
        if name is None
        else {
            "class": name,
            "settings": encode(value.settings, (*path, "settings"), parts),
            "modes": encode(modes_of(value), (*path, "modes"), parts),
        }
    )
    weights = {key: weight.detach() for key, weight in value.state_dict().items()}
    return {"network": {**built, "weights": encode(weights, path, parts)}}


def encode_array(value: np.ndarray, path: Path, parts: Parts) -> JSON:
    """Return an array: numbers, booleans and dates as a tensor, strings and objects in JSON.

    A large array of strings is stored as a tensor of characters, padded as in NumPy, because a file has to be as large
    as the memory that it takes.
    """
    if value.dtype.kind == "U":
        width = value.itemsize // 4
        if value.nbytes > MOST_TEXT:
            characters = np.array(value, dtype=value.dtype.newbyteorder("<"), order="C").reshape(-1, 1).view("<u4")
            return {"characters": {**parts.store("uint32", characters), "shape": list(value.shape)}}
        return {"text": {"shape": list(value.shape), "width": width, "items": value.ravel().tolist()}}
    if value.dtype.kind == "O":
        items = [encode(item, (*path, str(i)), parts) for i, item in enumerate(value.ravel().tolist())]
        return {"objects": {"shape": list(value.shape), "items": items}}
    if not is_array_type(value.dtype):
        raise unsavable(path, value, f"Its dtype {value.dtype} has no place in a safetensors file.")
    numbers = value.view(value.dtype.str[0] + "i8") if value.dtype.kind in "mM" else value
    return {"array": {**parts.store(numbers.dtype.name, numbers), "dtype": value.dtype.name}}


def encode_sparse(value: Any, path: Path, parts: Parts) -> JSON:
    """Return a sparse array as its three arrays."""
    arrays = {name: encode_array(getattr(value, name), (*path, name), parts) for name in ("data", "indices", "indptr")}
    return {"sparse": {"format": value.format, "shape": list(value.shape), **arrays}}


def encode_scalar(value: np.generic, path: Path) -> JSON:
    """Return a NumPy scalar as its dtype and its bytes."""
    if isinstance(value, np.str_):
        return {"scalar": ["str", str(value)]}
    if not is_array_type(value.dtype):
        raise unsavable(path, value)
    stored = np.asarray(value, dtype=value.dtype.newbyteorder("<"))
    return {"scalar": [value.dtype.name, stored.tobytes().hex()]}


def encode_tensor(value: Tensor, path: Path, parts: Parts) -> JSON:
    """Return a torch tensor, detached and moved to the CPU."""
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout != torch.strided or value.is_meta or dtype not in TENSOR_TYPES:
        what = f"{value.dtype} and {value.layout} on the device {value.device}"
        raise unsavable(path, value, f"It is {what}, which has no place in a safetensors file.")
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if dtype not in NUMPY_TYPES:
        tensor = tensor.view(torch.int16 if tensor.itemsize == 2 else torch.uint8)
    return {"tensor": parts.store(dtype, tensor.numpy())}


def encode_generator(value: Any, path: Path, parts: Parts) -> JSON:
    """Return a random number generator as its state; for a Generator also the seeds for spawning others."""
    legacy = isinstance(value, np.random.RandomState)
    state = value.get_state(legacy=False) if legacy else value.bit_generator.state
    if state["bit_generator"] not in BIT_GENERATORS:
        raise unsavable(path, value, f"Its bit generator must be one of {', '.join(BIT_GENERATORS)}.")
    if legacy:
        return {"RandomState": encode(state, path, parts)}
    seeds = value.bit_generator.seed_seq
    if type(seeds) is not np.random.SeedSequence:
        raise unsavable(path, value, f"Its seeds are a {type(seeds).__name__}, not a SeedSequence.")
    return {"Generator": [encode(state, path, parts), encode(seeds.state, path, parts)]}
