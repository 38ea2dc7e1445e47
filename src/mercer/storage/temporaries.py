"""Temporary files beside their targets: locked while their writer lives, and removed once it is dead."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # no POSIX system: nothing is locked, and nothing of others is removed
    fcntl = None  # type: ignore[assignment]

NAME = re.compile(r"\.mercer-[0-9a-f]{16}\.tmp")


def new_temporary(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return a new file of a name that nobody can foresee, open and locked by this process.

    It is made with O_EXCL, so that a link which somebody put there is not followed.
    """
    while True:
        path = folder / f".mercer-{secrets.token_hex(8)}.tmp"
        file = open(path, "xb")  # noqa: SIM115, the caller closes it
        try:
            _lock(file.fileno(), wait=True)
            # Between the making and the lock another process may have taken it for abandoned.
            if os.fstat(file.fileno()).st_nlink:
                return path, file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()


def remove_abandoned(folder: Path) -> None:
    """Remove the temporaries in a folder whose writer is dead: a living one holds the lock of its own."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if NAME.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: str) -> None:
    # Neither a link is followed nor a pipe waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid()
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and is_ours and _lock(descriptor, wait=False):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> Any:
    """Lock an open file for as long as it is open; return whether it is locked. Some file systems have no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
