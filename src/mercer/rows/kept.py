"""Checkpoints of sums: a partial sum is saved in a file, and the same sum continues from there after a crash.

The folder of the files belongs to the rows, as the workers that sum over them do: `open_rows(path, checkpoint=folder)`.
Each sum has a file of its own, whose name is a digest of the function, of all its values, and of where the rows come
from. The shape of the tree depends only on the number of blocks, so that the result is the same, bit for bit.
"""

import functools
import hashlib
import io
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import Rows
from mercer.rows.sources import MappedRows
from mercer.rows.tree import Make, TreeSum
from mercer.storage.atomic import check_path, write_atomically

# The least time between two writings of a file: with 1000 landmarks, a sum has some 30 MB.
SECONDS_BETWEEN = 20.0


class KeptSum:
    """A partial sum, the number of parts that it holds, and the file that both are saved in.

    Parameters
    ----------
    file : path or None
        If it exists, the sum continues from its content. With None, nothing is saved.
    device : torch.device, str or None, default=None
        The device of the sum.
    """

    def __init__(self, file: Path | None, device: Any = None) -> None:
        self.file = file
        self.total, self.done = TreeSum(), 0
        self._written = time.monotonic()
        if file is not None and file.exists():
            with np.load(file, allow_pickle=False) as kept:
                self.done = int(kept["done"])
                self.total = TreeSum.of_state({name: kept[name] for name in kept.files if name != "done"}, device)

    def add(self, terms: Sequence[Tensor]) -> None:
        """Add the next part, and write the file if the last writing was some time ago."""
        self.total.add(terms)
        self.done += 1
        if self.file is not None and time.monotonic() - self._written >= SECONDS_BETWEEN:
            self.write()

    def write(self) -> None:
        """Write the partial sum into the file, if there is one."""
        if self.file is None:
            return
        content = io.BytesIO()
        arrays: dict[str, Any] = self.total.state() | {"done": np.array(self.done)}
        np.savez(content, **arrays)
        write_atomically(self.file, [content.getbuffer()])
        self._written = time.monotonic()


def kept_sum(
    make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows: int, parts: str, device: Any = None
) -> KeptSum:
    """Return the sum of a function over sources: a new one, or one that continues from its file.

    `parts` says whether the sum adds blocks or tasks, and of which precision, so that no two of these share a file.
    """
    folder = checkpoint_of(sources)
    if folder is None:
        return KeptSum(None)
    digest = hashlib.sha256(f"{make.__module__}.{make.__qualname__} {rows} {parts}".encode())
    for value in (*values, *sources):
        _digest(value, digest)
    place = check_path(folder, "checkpoint")
    place.mkdir(parents=True, exist_ok=True)
    return KeptSum(place / f"{digest.hexdigest()[:24]}.npz", device)


def checkpoint_of(sources: Sequence[Any]) -> Any:
    """Return the checkpoint folder of the first source that has one, or None."""
    for source in sources:
        inside = source.sources if isinstance(source, MappedRows) else ()
        folder = checkpoint_of(inside) if inside else getattr(source, "checkpoint", None)
        if folder is not None and isinstance(source, Rows):
            return folder
    return None


def _digest(value: Any, digest: Any) -> None:
    """Add a value to a digest: arrays by their bytes, sources by what they read, other objects by their attributes."""
    digest.update(type(value).__name__.encode())
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).data)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _digest(part, digest)
    elif isinstance(value, dict):
        for name in sorted(value):
            _digest(name, digest)
            _digest(value[name], digest)
    elif isinstance(value, Rows):
        digest.update(f"{value.shape} {value.dtype} {value.names} {getattr(value, 'number', 0)}".encode())
        _digest([getattr(value, name) for name in ("first", "sources", "values") if hasattr(value, name)], digest)
        _digest(getattr(value, "function", None), digest)
        for piece in getattr(value, "pieces", ()):
            known = os.stat(piece.path)
            digest.update(f"{piece} {known.st_size} {known.st_mtime_ns}".encode())
        digest.update(getattr(getattr(value, "array", None), "name", "").encode())
    elif isinstance(value, torch.nn.Module):
        digest.update(repr(value).encode())
        _digest(dict(value.state_dict()), digest)
    elif isinstance(value, functools.partial):
        _digest([value.func, value.args, value.keywords], digest)
    elif callable(value) and hasattr(value, "__qualname__"):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        _digest(getattr(value, "__self__", None), digest)  # a method also depends on its object
    elif hasattr(value, "__dict__"):
        _digest(vars(value), digest)
    else:
        digest.update(repr(value).encode())
