"""Writing of files that are either complete or not changed at all."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mercer.exceptions import invalid_parameter, shown
from mercer.storage.temporaries import new_temporary, remove_abandoned


def check_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return `path` as a Path; raise if it is not a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise invalid_parameter(name, path, "a str or a path")
    if "\0" in os.fspath(path):
        raise invalid_parameter(name, path, "a path without NUL characters")
    return Path(path)


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the file that `path` names, with links followed; raise if no file can be written there."""
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
    """Return the error for a target that is a device, a pipe or a socket, which a file would replace."""
    return OSError(f"{what} is a device, a pipe or a socket, and would be replaced by a file: give the name of a file.")


def write_atomically(target: Path, pieces: Iterable[Any]) -> None:
    """Write a file completely or not at all: a temporary file beside it replaces it once it is on the disk.

    A new file gets the permissions that open() gives; a file that is replaced keeps its own. Devices and other targets
    that are not files are never replaced. Temporary files that killed processes left in the folder are removed. Errors
    of the system, such as that of a full disk, name the target.

    Parameters
    ----------
    target : Path
        As `check_target` returns it.
    pieces : iterable of bytes-like objects
        The content, written one piece after another.
    """
    if target.exists() and not target.is_file():
        raise not_a_file(str(target))
    remove_abandoned(target.parent)
    with errors_about(target):
        temporary, file = new_temporary(target.parent)
        try:
            with file:
                if target.exists():
                    shutil.copymode(target, temporary)  # before writing, so that a private file is private throughout
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                # The file is still open and locked here: one without a lock would count as abandoned and be removed.
                os.replace(temporary, target)
        except BaseException:  # KeyboardInterrupt, too, must not leave the temporary file behind
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    _sync_folder(target.parent)


@contextlib.contextmanager
def errors_about(target: Path) -> Any:
    """Make errors of the system name the file that was to be written; those of `write` do not name any."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        # OSError chooses the subclass that belongs to the number, such as PermissionError.
        raise OSError(error.errno, f"{os.strerror(error.errno)}; nothing was written to", str(target)) from error


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk, and with it the new name of a file.

    Not all systems can do this. Without it, the file is complete all the same.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
