"""Sums that outlive their process: how far a sum has come is kept in a file, and the same sum goes on from there.

Where this is to happen is said by the rows, as where they are summed is: `open_rows(path, checkpoint=folder)`. A file
belongs to one sum: its name is a digest of the function, of all its values, and of where the rows come from. Since the
shape of the tree depends on nothing but the number of blocks, what comes out is the same, bit for bit.
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

# The least time between two writings: a sum of 1000 landmarks is some 30 MB.
SECONDS_BETWEEN = 20.0


class KeptSum:
    """A sum, how many of its parts are in it, and the file that both are kept in.

    Parameters
    ----------
    file : path or None
        None keeps nothing.
    device : torch.device, str or None, default=None
        Where it is added up.
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
        """Add the next part, and write the file if that was not done just now."""
        self.total.add(terms)
        self.done += 1
        if self.file is not None and time.monotonic() - self._written >= SECONDS_BETWEEN:
            self.write()

    def write(self) -> None:
        """Bring the file up to date."""
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
    """Return the sum that is begun, or goes on; `parts` tells sums of blocks from those of tasks."""
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
    """Return the folder that the first of the sources with one says."""
    for source in sources:
        inside = source.sources if isinstance(source, MappedRows) else ()
        folder = checkpoint_of(inside) if inside else getattr(source, "checkpoint", None)
        if folder is not None and isinstance(source, Rows):
            return folder
    return None


def _digest(value: Any, digest: Any) -> None:
    """Add what tells a value from others: numbers by their bytes, sources by what they read, objects by their parts."""
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
        digest.update(f"{value.shape} {value.dtype} {value.names}".encode())
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
        _digest(getattr(value, "__self__", None), digest)  # a method is known by its object
    elif hasattr(value, "__dict__"):
        _digest(vars(value), digest)
    else:
        digest.update(repr(value).encode())
