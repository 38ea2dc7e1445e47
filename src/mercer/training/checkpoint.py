"""Checkpoints: one safetensors file, written as a whole or not at all, from which the same training can continue."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from mercer.blocks import row_slices, rows_per_block
from mercer.checks import check_number
from mercer.exceptions import ModelFileError, escaped, invalid_parameter, shortened, shown
from mercer.storage.atomic import check_target, write_atomically
from mercer.storage.reading import read_checked
from mercer.storage.tensors import N_FIRST, is_beginning, no_constant, unpacked
from mercer.training.states import State

FORMAT = "mercer-checkpoint 1"
FOREIGN = "is not a checkpoint, or is damaged or incomplete"
# MiB of the data that are hashed at a time.
PIECE = 16.0
# Number of differences that an error message names.
NAMED = 6


class Checkpoint:
    """The checkpoint file of one training: its path, the training it belongs to, and when it was last written.

    Parameters
    ----------
    path : str or path
    about : dict
        What identifies the training: recipe, seed, settings, a digest of the data, the shapes of the module. A file
        with other values is refused. It contains no tuples, as if it were read from JSON.
    seconds : float
        The time between two checkpoints at least.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, Any], seconds: float) -> None:
        self.path = check_target(path, "checkpoint")
        self.about = dict(about)
        self.seconds = check_number("checkpoint_seconds", seconds, at_least=0.0)
        self._written = -float("inf")

    def is_due(self) -> bool:
        """Whether it is time to write. The first time is at the start, so that a bad path is noticed early."""
        return time.monotonic() - self._written >= self.seconds

    def write(self, document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Write the file as a whole or not at all: a kill at any moment leaves the old or the new one."""
        text = json.dumps({"format": FORMAT, "about": self.about, **document}, allow_nan=False)
        stored = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        data = safetensors.torch.save(stored, {"document": text, "sha256": _digest(text, stored)})
        write_atomically(self.path, [data])
        self._written = time.monotonic()

    def wrong(self, phrase: str) -> ModelFileError:
        """Return the error that says what is wrong with the file, such as "is damaged"."""
        return ModelFileError(f"checkpoint={shown(str(self.path))} {phrase}.")

    def read(self) -> tuple[dict[str, Any], State] | None:
        """Return the document and the tensors, or None if there is no file."""
        try:
            data = read_checked(self.path, wrong_beginning, N_FIRST, self.wrong)
        except FileNotFoundError:
            return None
        try:
            document, tensors = _unpack(data)
        except ModelFileError as error:
            raise self.wrong(str(error)) from None
        except (ValueError, RecursionError) as error:  # invalid JSON
            raise self.wrong(f"is malformed ({type(error).__name__}: {escaped(shortened(str(error)))})") from error
        found = differences(document["about"], self.about)
        if found:
            more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
            raise ModelFileError(
                f"checkpoint={str(self.path)!r} is of another training: {'; '.join(found[:NAMED])}{more}. Put back "
                "what differs (a random_state of None is never the same), give another path, or remove the file."
            )
        return document, tensors


def data_digest(*arrays: Any) -> str:
    """Return a SHA-256 of arrays or tensors with their types and shapes, which identifies the data of a fit.

    It reads blocks of rows, so that a memory map is never in memory as a whole.
    """
    digest = hashlib.sha256()
    for array in arrays:
        values = array if hasattr(array, "shape") else np.asarray(array)
        digest.update(f"{values.dtype} {tuple(values.shape)}".replace("torch.", "").encode())
        for rows in row_slices(len(values), rows_per_block(len(values), values.nbytes // max(1, len(values)), PIECE)):
            block = values[rows]
            digest.update((block.detach().cpu().numpy() if isinstance(block, Tensor) else block).tobytes())
    return digest.hexdigest()


def differences(before: Any, now: Any, name: str = "") -> list[str]:
    """Return the differences between two JSON values, one sentence for each."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*before, *(key for key in now if key not in before)]
        return [
            sentence
            for key in keys
            for sentence in differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
        ]
    was, now_is = (shortened(json.dumps(value)) for value in (before, now))
    return [] if before == now else [f"{escaped(shortened(name))} was {was} and is {now_is}"]


def as_json(name: str, value: Any) -> Any:
    """Return `value` as it is after writing and reading it as JSON: tuples become lists."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise invalid_parameter(name, value, "made of dicts, lists, strings and finite numbers", str(error)) from None


def wrong_beginning(first: bytes, size: int) -> str | None:
    """Return what is wrong with the first bytes of a file of the given size, or None."""
    return None if is_beginning(first, size) else FOREIGN


def _unpack(data: bytearray) -> tuple[dict[str, Any], State]:
    try:
        texts, views = unpacked(data)
    except (ValueError, RecursionError):  # a ModelFileError is a ValueError
        raise ModelFileError(FOREIGN) from None
    text = texts.get("document", "")
    if texts.get("sha256") != _digest(text, views):
        raise ModelFileError("is not a checkpoint, or is damaged: its content does not match its SHA-256")
    document = json.loads(text, parse_constant=no_constant)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise ModelFileError(f"is of the format {shown(found)}, and this version reads {FORMAT!r}")
    if not isinstance(document.get("about"), dict):
        raise ModelFileError("is malformed: it does not say what training it is of")
    # Copies have the memory alignment of torch's own tensors, so that sums have the same order, to the last bit.
    return document, {name: view.clone() for name, view in views.items()}


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(_memory(tensors[name]))
    return digest.hexdigest()


def _memory(tensor: Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
