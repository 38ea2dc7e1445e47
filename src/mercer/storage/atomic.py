"""Files that are written whole or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mercer.exceptions import invalid_parameter


def check_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return `path` as a Path."""
    if not isinstance(path, (str, os.PathLike)):
        raise invalid_parameter(name, path, "a str or a path")
    return Path(path)


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the file that `path` leads to, links followed, if one can be put there."""
    target = Path(os.path.realpath(check_path(path, name)))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{name}={str(path)!r}: create the folder {str(target.parent)!r} first.")
    if target.is_dir():
        raise IsADirectoryError(f"{name}={str(path)!r} is a folder: give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise not_a_file(f"{name}={str(path)!r}")
    return target


def not_a_file(what: str) -> OSError:
    """Return the error for a device, a pipe or a socket, which a file would take the place of."""
    return OSError(f"{what} is a device, a pipe or a socket, and would be replaced by a file: give the name of a file.")


def write_atomically(target: Path, pieces: Iterable[Any]) -> None:
    """Write a file whole or not at all: a temporary one beside it takes its place once it is on the disk.

    A new file gets the permissions that open() gives, one that is replaced passes on its own. What is no file, such as
    a device, is never replaced.
    """
    if target.exists() and not target.is_file():
        raise not_a_file(str(target))
    temporary = target.parent / f".mercer-{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)  # first, so that a private file is private at all times
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # KeyboardInterrupt too must not leave the temporary file
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    # The new name is on the disk once the folder is. Not all systems can do it; the file is whole anyway.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
