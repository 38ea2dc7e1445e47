"""Reading of files that may be damaged or hostile: they are checked before their content is read into memory."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from mercer.exceptions import escaped

MIB = 2**20
# A file of which less than this share is on the disk is refused: it consists of holes, and reading it could take hours.
# Mercer writes no such files.
LEAST_ON_DISK = 1 / 16


def open_regular(path: Path, error: Callable[[str], Exception]) -> BinaryIO:
    """Return a regular file, opened for reading; `error` makes the exception for a folder, a pipe or a device.

    The call does not wait for a pipe, and does not read a device.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise error("is a folder, not a file" if stat.S_ISDIR(mode) else "is a device, a pipe or a socket, not a file")
    return os.fdopen(descriptor, "rb")


def read_checked(
    path: Path, begins_well: Callable[[bytes, int], str | None], n_first: int, error: Callable[[str], Exception]
) -> Any:
    """Return the content of a regular file as one bytearray, if its first bytes are right.

    Parameters
    ----------
    path : Path
    begins_well : callable
        Receives the first bytes and the size of the file; returns None if they are right, else what is wrong.
    n_first : int
        How many of the first bytes it receives, if the file has so many.
    error : callable
        Makes the exception from a phrase that says what is wrong, such as "is a folder".
    """
    with open_regular(path, error) as file:
        about = os.fstat(file.fileno())
        size = about.st_size
        # At most `size` bytes are read, since some special files of size 0 would wait until there is something to read.
        wrong = begins_well(file.read(min(n_first, size)), size) or _too_much(about)
        if wrong:
            raise error(wrong)
        file.seek(0)
        data = bytearray(size)
        if file.readinto(data) != size:  # type: ignore[attr-defined]
            raise error("is damaged or incomplete: it became shorter while it was read")
    return data


def _too_much(about: os.stat_result) -> str | None:
    """Return why a file cannot be read into memory, or None if it can."""
    memory = memory_of_machine()
    if memory is not None and about.st_size > memory:
        return f"has {about.st_size / MIB:.0f} MiB, more than the {memory / MIB:.0f} MiB of this machine's memory"
    on_disk = getattr(about, "st_blocks", about.st_size) * 512
    if about.st_size > MIB and on_disk < LEAST_ON_DISK * about.st_size:
        return f"is made of holes: of its {about.st_size} bytes {on_disk} are on the disk"
    return None


def memory_of_machine() -> int | None:
    """Return the size of this machine's memory in bytes, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def naming(path: Path, kind: Callable[[str], Exception]) -> Callable[[str], Exception]:
    """Return a function that makes an exception from a phrase about a file, and puts the name of the file before it."""
    return lambda phrase: kind(f"{escaped(str(path))} {phrase}.")
