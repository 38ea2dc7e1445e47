"""Save a model to one file and load it again: no pickle, no code is executed, and every changed bit is detected."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

import mercer
from mercer.exceptions import InvalidParameterError, ModelFileError, escaped, invalid_parameter, shortened, shown
from mercer.io.classes import class_name, is_estimator
from mercer.io.container import pack, read, unpack
from mercer.io.decoding import Source, decode
from mercer.io.encoding import Parts, encode, unsavable
from mercer.io.networks import NetworkMismatch
from mercer.io.schemas import check_model
from mercer.storage.atomic import check_target, write_atomically
from mercer.storage.tensors import allowance, no_constant

__all__ = ["load", "save"]

FORMAT = "mercer-model"
# Raise this when an earlier file no longer loads, or would mean something else: a class, a parameter or an attribute is
# renamed or removed, a fitted attribute is needed that earlier files lack, or a kind of value is written in another
# way. Do not raise it for a new class, or for a new parameter whose default is the earlier behavior. The directory
# tests/io/formats lists what files hold, and a test compares the list with the code.
# 1: until names and modules were ordered; 2: characters of long strings are tensors; 3: trends, warps of targets and
# noise by x of table models, descriptions and findings of workflows, pipelines.
FORMAT_VERSION = 3


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, fitted or not, so that `load` restores it with bit-identical results.

    Parameters
    ----------
    model : an estimator, a kernel or a metric of Mercer
        Its parameters and its fitted attributes are saved, without progress callbacks. Callables and torch modules that
        the user gave as parameters are not saved: the file notes their names, such as `kernel__function`, and `load`
        asks for them. Only the weights of these modules are saved. The networks of `mercer.networks` are saved whole.
    path : str or path
        The file is written completely or not at all. An existing file is replaced at the very end.

    Raises
    ------
    TypeError
        If a value cannot be saved. The message names the attribute that holds it, and nothing is written.

    Notes
    -----
    The file is in the safetensors format. Arrays keep their dtype and their order in memory, C or Fortran, but views
    into larger arrays are loaded as compact arrays. The SHA-256 of the whole content protects against damage, not
    against malice: whoever can write the file can also write a new digest.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> path = Path(tempfile.mkdtemp()) / "kernel.mercer"
    >>> mercer.save(mercer.kernels.Laplace(bandwidth=2.0), path)
    >>> mercer.load(path)
    Laplace(bandwidth=2.0)
    """
    target = check_target(path)
    if not is_estimator(type(model)) or class_name(type(model)) is None:
        raise unsavable((), model)
    parts = Parts()
    encoded = encode(model, (), parts)
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "mercer": mercer.__version__,
        "objects": {name: describe(given) for name, given in parts.given.items()},
        "model": encoded,
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    write_atomically(target, pack(text, parts.tensors))


def load(
    path: str | os.PathLike[str], objects: Mapping[str, Any] | None = None, *, network: nn.Module | None = None
) -> Any:
    """Load a model that was saved by `save`; a damaged or foreign file is refused before anything in it is used.

    Parameters
    ----------
    path : str or path
    objects : dict, optional
        The callables and torch modules that the file asks for, by name, such as
        `{"kernel__function": my_function}`. They must be those that the model was fitted with.
    network : torch.nn.Module, optional
        Your own network that the file asks for, whatever its name there: a shorthand for `objects`. It must be built
        like the one that was saved. The saved weights are loaded into a copy of it. Mercer's own networks are in the
        file already.

    Returns
    -------
    model
        An object of the class that was saved, with its tensors on the CPU. The parameters `checkpoint` and `device`,
        which belong to one machine, are None.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, is not a Mercer file, has another version of the format, or holds a model whose parts do
        not fit together. In the last case, the message names the field.
    InvalidParameterError
        If `objects` does not have exactly the names that the file asks for; the message lists them.
    """
    data = read(path)
    with errors_naming(path):
        text, tensors = unpack(data)
        document = check_document(json.loads(text, parse_constant=no_constant))
    given = check_objects(with_network(objects, network, document["objects"]), document["objects"])
    with errors_naming(path, saved_by=document.get("mercer")):
        model = decode(document["model"], Source(tensors, given, allowance(len(data))))
        if not is_estimator(type(model)):
            raise ModelFileError(f"holds a {type(model).__name__}, not a model")
        check_model(model)
    return model


def with_network(objects: Any, network: Any, needed: Mapping[str, Any]) -> Any:
    """Return the user's objects, with the network added under every name that asks for one."""
    if network is None:
        return objects
    names = [name for name in needed if name.rpartition("__")[2] == "network"]
    if not names:
        raise invalid_parameter("network", type(network).__name__, "None: the file asks for no network")
    return {**(objects or {}), **dict.fromkeys(names, network)}


def describe(given: Any) -> str:
    """Return a description by which the user recognizes an object that the file does not hold."""
    name = getattr(given, "__qualname__", None)
    return f"{type(given).__name__} {name}" if isinstance(name, str) else type(given).__name__


def check_document(document: Any) -> dict[str, Any]:
    """Return the document after checking that it has this format, in a version that can be read."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError("is not a Mercer model file")
    version, objects = document.get("version"), document.get("objects")
    if type(version) is not int or version < 1 or not isinstance(objects, dict):
        raise ModelFileError("is malformed: its version or its list of objects is missing")
    if version != FORMAT_VERSION:
        what = "upgrade mercer to load it" if version > FORMAT_VERSION else "fit the model again and save it"
        raise ModelFileError(
            f"has format version {version}, written by mercer {escaped(shortened(str(document.get('mercer'))))}, and "
            f"mercer {mercer.__version__} reads version {FORMAT_VERSION}: {what}"
        )
    return document


def check_objects(objects: Mapping[str, Any] | None, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's objects after checking that they are callables with exactly the names in the file."""
    if objects is not None and not isinstance(objects, Mapping):
        raise invalid_parameter("objects", objects, "None or a dictionary of names and callables")
    given = dict(objects or {})
    if given.keys() != needed.keys():
        wanted = shortened(", ".join(f"{shown(name)} ({escaped(str(what))})" for name, what in needed.items()), 2000)
        raise InvalidParameterError(
            f"objects has the names {sorted(map(str, given))}, but the file asks for "
            f"{'exactly ' + wanted if wanted else 'none'}. What a user's code computes is not saved: "
            "give the same objects that the model was fitted with, by these names."
        )
    for name, value in given.items():
        if not callable(value):
            raise invalid_parameter(f"objects[{name!r}]", value, f"a callable; it was a {escaped(str(needed[name]))}")
    return given


@contextmanager
def errors_naming(path: str | os.PathLike[str], saved_by: Any = None) -> Iterator[None]:
    """Turn any exception that a damaged or crafted file causes into a ModelFileError that names the file."""
    by = ""
    if saved_by not in (None, mercer.__version__):
        by = f" It was saved by mercer {escaped(shortened(str(saved_by)))}, this is mercer {mercer.__version__}."
    name = escaped(str(Path(path)))
    try:
        yield
    except NetworkMismatch:  # is about the network that the user gave
        raise
    except MemoryError:  # is about the machine, not about the file
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{name} {_one_line(error)}.{by}") from error.__cause__
    except InvalidParameterError as error:
        raise ModelFileError(f"{name} is malformed: {_one_line(error)}{by}") from error
    except Exception as error:
        raise ModelFileError(f"{name} is malformed ({type(error).__name__}: {_one_line(error)}).{by}") from error


def _one_line(error: Exception) -> str:
    return escaped(shortened(" ".join(str(error).split()), 1000))
