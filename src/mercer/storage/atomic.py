"""Files that are written whole or not at all."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mercer.exceptions import invalid_parameter, shown
from mercer.storage.temporaries import new_temporary, remove_abandoned


def check_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return `path` as a Path."""
    if not isinstance(path, (str, os.PathLike)):
        raise invalid_parameter(name, path, "a str or a path")
    if "\0" in os.fspath(path):
        raise invalid_parameter(name, path, "a path without NUL characters")
    return Path(path)


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the file that `path` leads to, links followed, if one can be put there."""
    target = Path(os.path.realpath(check_path(path, name)))
    given = f"{name}={shown(str(path))}"
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{given}: create the folder {shown(str(target.parent))} first.")
    if target.is_dir():
        raise IsADirectoryError(f"{given} is a folder: give the name of a file in it.")
    if target.exists() and not target.is_file():
        raise not_a_file(given)
    return target


def not_a_file(what: str) -> OSError:
    """Return the error for a device, a pipe or a socket, which a file would take the place of."""
    return OSError(f"{what} is a device, a pipe or a socket, and would be replaced by a file: give the name of a file.")


def write_atomically(target: Path, pieces: Iterable[Any]) -> None:
    """Write a file whole or not at all: a temporary one beside it takes its place once it is on the disk.

    A new file gets the permissions that open() gives, one that is replaced passes on its own. What is no file, such as
    a device, is never replaced. Temporaries that killed writers left in the folder are removed. Errors of the system,
    such as a full disk, name the target.
    """
    if target.exists() and not target.is_file():
        raise not_a_file(str(target))
    remove_abandoned(target.parent)
    with errors_about(target):
        temporary, file = new_temporary(target.parent)
        try:
            with file:
                if target.exists():
                    shutil.copymode(target, temporary)  # first, so that a private file is private at all times
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                # Under its lock to the end: a temporary without one is taken for that of a dead writer.
                os.replace(temporary, target)
        except BaseException:  # KeyboardInterrupt too must not leave the temporary file
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    _sync_folder(target.parent)


@contextlib.contextmanager
def errors_about(target: Path) -> Any:
    """Let errors of the system name the file that was to be written: those of `write` name none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        # The constructor chooses the class that belongs to the number, such as PermissionError.
        raise OSError(error.errno, f"{os.strerror(error.errno)}; nothing was written to", str(target)) from error


def _sync_folder(folder: Path) -> None:
    # The new name is on the disk once the folder is. Not all systems can do it; the file is whole anyway.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
