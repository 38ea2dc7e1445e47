"""Temporary files beside their targets: locked while the writing process runs, and removed once it has died."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # not a POSIX system: no file is locked, and none of other processes is removed
    fcntl = None  # type: ignore[assignment]

NAME = re.compile(r"\.mercer-[0-9a-f]{16}\.tmp")


def new_temporary(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return the path of a new file with a random name, and the file, opened and locked by this process.

    It is created with O_EXCL, so that a link that somebody else has put there is not followed.
    """
    while True:
        path = folder / f".mercer-{secrets.token_hex(8)}.tmp"
        file = open(path, "xb")  # noqa: SIM115, the caller closes it
        try:
            _lock(file.fileno(), wait=True)
            # Another process may have removed the file as abandoned before it was locked; then there are no links left.
            if os.fstat(file.fileno()).st_nlink:
                return path, file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files in a folder whose writer has died; a running writer holds the lock of its file."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if NAME.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: str) -> None:
    """Remove a regular file of this user if no process holds its lock."""
    # The flags keep the call from following a link and from waiting for a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid()
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and is_ours and _lock(descriptor, wait=False):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> Any:
    """Lock a file until it is closed, and return whether that succeeded: some file systems have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
