"""Where data come from: a file in the user's folder or in Mercer's cache, or a public repository."""

import hashlib
import http.client
import io
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import DataFileError, DataWarning, warn_user
from mercer.storage.atomic import write_atomically

Arrays = dict[str, np.ndarray]
# Bytes that the arrays of a set may take; those of CIFAR-10 take 184 million.
MOST_UNPACKED = 2**31
# How the headers of arrays are read, by the version of their format.
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What comes of a file that is not whole, or is something else.
DAMAGES = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, NotImplementedError)


class Source(NamedTuple):
    """A set's name, the files that may hold it, its own one first, and its home, if it has one to be fetched from.

    `from_file` makes the data of the file's arrays, and `fetch` gets such arrays from the home.
    """

    name: str
    files: tuple[str, ...]
    from_file: Callable[[Arrays], Any]
    fetch: Callable[[], Arrays]
    has_home: bool = True


def data_folder() -> Path:
    """Return the folder of data files: MERCER_DATA if that is set, else `mercer` in the user's cache."""
    named = os.environ.get("MERCER_DATA")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "mercer"


def find(source: Source) -> Path | None:
    """Return the file of a set, or None if there is none yet."""
    return next((path for file in source.files if (path := data_folder() / file).is_file()), None)


def read_or_fetch(source: Source) -> Any:
    """Return a set from its file. If there is none, download the set and keep it."""
    path = find(source)
    if path is not None:
        return read(source, path)
    arrays = fetch(source)
    try:
        keep(source, arrays, data_folder())
    except OSError as error:
        warn_user(
            f"the data set {source.name!r} will be fetched again next time: it cannot be kept in "
            f"{str(data_folder())!r} ({error}); MERCER_DATA may name another folder.",
            DataWarning,
        )
    return source.from_file(arrays)


def fetch(source: Source) -> Arrays:
    """Download a set's arrays; if that is not possible, say what the user can do."""
    try:
        return source.fetch()
    except (OSError, http.client.HTTPException) as error:
        folder = os.environ.get("MERCER_DATA")
        where = f"MERCER_DATA={folder!r} has no {' or '.join(source.files)}" if folder else "MERCER_DATA is not set"
        message = f"the data set {source.name!r} cannot be had: {where}, and fetching it failed: {error}"
        raise ConnectionError(message) from error


def read(source: Source, path: Path) -> Any:
    """Return the set that a file holds, if the file is whole."""
    try:
        return source.from_file(read_arrays(path))
    except DAMAGES as error:
        reason = f"it has no array {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        mend = f"run `mercer data get {source.name} --fresh`" if source.has_home else "put a good copy in its place"
        raise DataFileError(f"{str(path)!r} is damaged, {reason.rstrip('.')}: {mend}.") from error


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of an .npz file, if it is the one that the checksum beside it, if any, was taken of."""
    content = path.read_bytes()
    beside = checksum_file(path)
    if beside.is_file() and beside.read_text(encoding="utf-8").split()[:1] != [hashlib.sha256(content).hexdigest()]:
        raise ValueError(f"it has another SHA-256 than {beside.name} says")
    check_unpacked(content)
    with np.load(io.BytesIO(content)) as arrays:
        return {key: arrays[key] for key in arrays.files}


def check_unpacked(content: bytes) -> None:
    """Raise if arrays of an .npz file are larger than any set is, or than the file has numbers for.

    NumPy allocates what an array says of its shape before it reads a number of it.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        size = sum(part.file_size for part in parts.infolist())
        if size > MOST_UNPACKED:
            raise ValueError(f"its arrays take {size} bytes, and those of a set {MOST_UNPACKED} at most")
        for part in parts.infolist():
            with parts.open(part) as file:
                shape, _, kind = HEADERS[np.lib.format.read_magic(file)](file)
                needed, there = math.prod(shape) * kind.itemsize, part.file_size - file.tell()
                if needed != there:
                    raise ValueError(f"its array {part.filename!r} says that it has {needed} bytes, and has {there}")


def keep(source: Source, arrays: Mapping[str, np.ndarray], folder: Path) -> Path:
    """Write a set's arrays and their checksum into a folder, which is created if necessary, and return the file."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    return write_file(folder / source.files[0], packed.getvalue())


def write_file(path: Path, content: bytes) -> Path:
    """Write a file and its checksum, each whole or not at all, such that no kill leaves a pair that does not match."""
    path.parent.mkdir(parents=True, exist_ok=True)
    checksum_file(path).unlink(missing_ok=True)
    write_atomically(path, [content])
    write_atomically(checksum_file(path), [f"{hashlib.sha256(content).hexdigest()}  {path.name}\n".encode()])
    return path


def checksum_file(path: Path) -> Path:
    """Return the file beside another that holds its checksum, in the form that `sha256sum --check` reads."""
    return path.with_name(f"{path.name}.sha256")


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of arrays by name, type, shape and entries, whatever file holds them, in whatever order."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()
