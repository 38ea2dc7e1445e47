"""Reading data sets from files in the user's folder or in Mercer's cache, and downloading and keeping them."""

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
# The largest size of the arrays of a data set, in bytes. Those of CIFAR-10 have 184 million.
MOST_UNPACKED = 2**31
# The functions that read the header of an array, by the version of its format.
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# The errors raised by files that are incomplete, damaged or of another kind.
DAMAGES = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, NotImplementedError)


class Source(NamedTuple):
    """A data set: its name, its files, and how it is read and downloaded.

    Attributes
    ----------
    name : str
    files : tuple of str
        The names of files that may hold the set. The first one is its own, under which it is kept.
    from_file : callable
        Makes the data set from the arrays of its file.
    fetch : callable
        Downloads these arrays.
    has_home : bool
        Whether the set can be downloaded.
    """

    name: str
    files: tuple[str, ...]
    from_file: Callable[[Arrays], Any]
    fetch: Callable[[], Arrays]
    has_home: bool = True


def data_folder() -> Path:
    """Return the folder of data files: MERCER_DATA if that is set, otherwise `mercer` in the user's cache."""
    named = os.environ.get("MERCER_DATA")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "mercer"


def find(source: Source) -> Path | None:
    """Return the file of a data set, or None if there is none."""
    return next((path for file in source.files if (path := data_folder() / file).is_file()), None)


def read_or_fetch(source: Source) -> Any:
    """Return a data set from its file. If there is no file, download the set and keep it."""
    path = find(source)
    if path is not None:
        return read(source, path)
    arrays = fetch(source)
    try:
        keep(source, arrays, data_folder())
    except OSError as error:
        warn_user(
            f"the data set {source.name!r} will be downloaded again next time: it cannot be kept in "
            f"{str(data_folder())!r} ({error}); MERCER_DATA may name another folder.",
            DataWarning,
        )
    return source.from_file(arrays)


def fetch(source: Source) -> Arrays:
    """Return the arrays of a data set, downloaded; if that fails, the error says where Mercer has looked for files."""
    try:
        return source.fetch()
    except (OSError, http.client.HTTPException) as error:
        folder = os.environ.get("MERCER_DATA")
        where = f"MERCER_DATA={folder!r} has no {' or '.join(source.files)}" if folder else "MERCER_DATA is not set"
        message = f"the data set {source.name!r} is not available: {where}, and downloading it failed: {error}"
        raise ConnectionError(message) from error


def read(source: Source, path: Path) -> Any:
    """Return the data set in a file; a damaged file raises an error that says how to replace it."""
    try:
        return source.from_file(read_arrays(path))
    except DAMAGES as error:
        reason = f"it has no array {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        mend = f"run `mercer data get {source.name} --fresh`" if source.has_home else "put a good copy in its place"
        raise DataFileError(f"{str(path)!r} is damaged, {reason.rstrip('.')}: {mend}.") from error


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of an .npz file, after comparing it with the checksum file beside it, if there is one."""
    content = path.read_bytes()
    beside = checksum_file(path)
    if beside.is_file() and beside.read_text(encoding="utf-8").split()[:1] != [hashlib.sha256(content).hexdigest()]:
        raise ValueError(f"its SHA-256 is not the one in {beside.name}")
    check_unpacked(content)
    with np.load(io.BytesIO(content)) as arrays:
        return {key: arrays[key] for key in arrays.files}


def check_unpacked(content: bytes) -> None:
    """Raise if the arrays of an .npz file are too large, or if their headers promise another size than the file has.

    NumPy allocates an array by the shape in its header before it reads any number.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        size = sum(part.file_size for part in parts.infolist())
        if size > MOST_UNPACKED:
            raise ValueError(f"its arrays take {size} bytes, and at most {MOST_UNPACKED} are allowed")
        for part in parts.infolist():
            with parts.open(part) as file:
                shape, _, kind = HEADERS[np.lib.format.read_magic(file)](file)
                needed, there = math.prod(shape) * kind.itemsize, part.file_size - file.tell()
                if needed != there:
                    raise ValueError(f"its array {part.filename!r} says that it has {needed} bytes, and has {there}")


def keep(source: Source, arrays: Mapping[str, np.ndarray], folder: Path) -> Path:
    """Write the arrays of a data set and a checksum into a folder, creating it if necessary, and return the file."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    return write_file(folder / source.files[0], packed.getvalue())


def write_file(path: Path, content: bytes) -> Path:
    """Write a file and its checksum file; a process that is killed leaves no incomplete file and no wrong checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    checksum_file(path).unlink(missing_ok=True)
    write_atomically(path, [content])
    write_atomically(checksum_file(path), [f"{hashlib.sha256(content).hexdigest()}  {path.name}\n".encode()])
    return path


def checksum_file(path: Path) -> Path:
    """Return the path of a file's checksum, which lies beside it and has the format of `sha256sum --check`."""
    return path.with_name(f"{path.name}.sha256")


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a SHA-256 of the names, types, shapes and entries of arrays; it does not depend on their order or file."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()
