"""The number of threads: one for small matrices, for which two would wait longer than they work, and several for tasks.

The number of threads of a BLAS is set for the whole process. That of torch is set for a Python thread and for those
that it starts, that of OpenMP in scikit-learn for each Python thread alone. If scikit-learn's OpenMP library was loaded
before that of torch, the two are separate, and torch's setting has no effect on k-means. Blocks of `one_thread` may run
in several Python threads at once: the first block to begin limits the BLAS, and the last one to end restores it.
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
    """Return the controller of all thread pools of the process, made anew if modules were imported in the meantime."""
    return _controller_after(len(sys.modules))


@lru_cache(maxsize=1)
def _controller_after(n_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


class _Guard:
    """How many blocks of `one_thread` are running, and the numbers of threads from before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.torch_before = 1
        self.limit: Any = None


_GUARD = _Guard()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and torch to one thread inside the block; the last block to end restores the setting."""
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
            # In a Python thread that was started inside a block, `before` is 1 and not the user's setting.
            torch.set_num_threads(_GUARD.torch_before if is_last else before)
            if is_last:
                _GUARD.limit.restore_original_limits()


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Use one thread inside the block if the matrices have fewer than `FEW_ROWS` rows; else change nothing."""
    if n_rows >= FEW_ROWS:
        yield
        return
    with one_thread():
        yield


def threads_on(device: torch.device | str | None) -> int:
    """Return how many Python threads may work side by side on a device: as many as torch has on the CPU, else one."""
    return torch.get_num_threads() if device is None or torch.device(device).type == "cpu" else 1


def in_parallel(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None) -> list[Result]:
    """Return the results of a function for all items, in the order of the items.

    Parameters
    ----------
    function : callable
        A function without side effects. It may run in several Python threads at once, each with one thread of BLAS.
    items : iterable
    n_jobs : int or None, default=None
        The number of Python threads, as in scikit-learn: None is 1, or what a `joblib.parallel_config` says, and -1 is
        one for each processor. Threads rather than processes suffice, since BLAS and torch release Python's lock.
    """
    listed = list(items)
    workers = min(effective_n_jobs(n_jobs), len(listed))
    if workers <= 1:
        return [function(item) for item in listed]
    # Whether torch records operations is a setting of each Python thread: the jobs take over that of the caller.
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def job(item: Item) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            return function(item)

    with one_thread():
        return Parallel(n_jobs=workers, prefer="threads")(delayed(job)(item) for item in listed)
