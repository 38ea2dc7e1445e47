"""Freed memory is kept from block to block in the tasks of a worker, as it is in a process that Dask did not start."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# What Dask's nanny sets for its workers: the C library then returns memory to the system as soon as it is freed.
VARIABLE = "MALLOC_TRIM_THRESHOLD_"
# Parameters of glibc's mallopt, its default below which an array shares the heap, and the largest that it accepts.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
USUAL_MMAP, LARGEST_MMAP, LARGEST_TRIM = 2**17, 2**25, 2**30


class _Guard:
    """How many tasks of this process keep freed memory at the moment."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0


_GUARD = _Guard()


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Keep freed memory for the next arrays inside the block, and return it to the system after the last such block.

    Each block of rows needs arrays of the same sizes again. If their memory is returned to the system in between, all
    of it has to be mapped and cleared anew: with 1000 landmarks this took a third of the time of a worker. Nothing is
    done where the variable is not set, or where the C library is not glibc.
    """
    libc = _glibc() if os.environ.get(VARIABLE, "").isdigit() else None
    if libc is None:
        yield
        return
    with _GUARD.lock:
        if _GUARD.depth == 0:
            libc.mallopt(MMAP_THRESHOLD, LARGEST_MMAP)
            libc.mallopt(TRIM_THRESHOLD, LARGEST_TRIM)
        _GUARD.depth += 1
    try:
        yield
    finally:
        with _GUARD.lock:
            _GUARD.depth -= 1
            if _GUARD.depth == 0:
                libc.mallopt(MMAP_THRESHOLD, USUAL_MMAP)
                libc.mallopt(TRIM_THRESHOLD, int(os.environ[VARIABLE]))
                libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """Return the C library of this process if it is glibc."""
    if os.name != "posix":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
