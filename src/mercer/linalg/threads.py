"""How many threads: one for small matrices, on which two wait for each other longer than they work; several for tasks.

The number of threads of a BLAS belongs to the whole process, that of torch to each Python thread and to those that it
begins, that of OpenMP in scikit-learn to each Python thread alone. The latter is a library of its own where it was
loaded before torch's, whose setting then does not reach k-means. What is inside `one_thread` may run in several Python
threads at once, so the first to enter limits the BLAS and the last to leave puts it back.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import torch
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

# Below this many rows one thread is faster: at 900 rows, twice as fast as two threads of torch beside two of LAPACK.
FEW_ROWS = 1200

Item = TypeVar("Item")
Result = TypeVar("Result")


def _controller() -> ThreadpoolController:
    """Return what sets the threads of all pools there are; a module that was imported since may have brought one."""
    return _controller_after(len(sys.modules))


@lru_cache(maxsize=1)
def _controller_after(n_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


class _Guard:
    """How often `one_thread` is entered at the moment, and what was set before the first time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.torch_before = 1
        self.limit: Any = None


_GUARD = _Guard()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS, OpenMP and torch work with one thread inside the block; the last block to end puts the setting back."""
    before = torch.get_num_threads()
    with _GUARD.lock:
        if _GUARD.depth == 0:
            _GUARD.torch_before = before
            _GUARD.limit = _controller().limit(limits=1, user_api="blas")
        _GUARD.depth += 1
    openmp = _controller().limit(limits=1, user_api="openmp")
    torch.set_num_threads(1)
    try:
        yield
    finally:
        openmp.restore_original_limits()
        with _GUARD.lock:
            _GUARD.depth -= 1
            is_last = _GUARD.depth == 0
            # A thread that was begun inside a block has known nothing but 1.
            torch.set_num_threads(_GUARD.torch_before if is_last else before)
            if is_last:
                _GUARD.limit.restore_original_limits()


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Work with one thread inside the block if the matrices have few rows; the setting before is put back after it."""
    if n_rows >= FEW_ROWS:
        yield
        return
    with one_thread():
        yield


def threads_on(device: torch.device | str | None) -> int:
    """Return how many Python threads may work side by side on a device: as many as torch has on the CPU, else one."""
    return torch.get_num_threads() if device is None or torch.device(device).type == "cpu" else 1


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None) -> list[Result]:
    """Return the results of a function for all items, in their order.

    Parameters
    ----------
    function : callable
        Without side effects: it may run in several Python threads at once, each with one thread of BLAS.
    items : iterable
    n_jobs : int or None, default=None
        Python threads, as scikit-learn counts them: None is 1, or what a `joblib.parallel_config` says, and -1 one for
        each processor. BLAS and torch let other threads run while they work.
    """
    listed = list(items)
    workers = min(effective_n_jobs(n_jobs), len(listed))
    if workers <= 1:
        return [function(item) for item in listed]
    with one_thread():
        return Parallel(n_jobs=workers, prefer="threads")(delayed(function)(item) for item in listed)
