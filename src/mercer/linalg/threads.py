"""One thread for small matrices: on them two threads wait for each other longer than they work."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch
from threadpoolctl import ThreadpoolController

# Below this many rows one thread is faster: at 900 rows, twice as fast as two threads of torch beside two of LAPACK.
FEW_ROWS = 1200


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads_for(n_rows: int) -> Iterator[None]:
    """Work with one thread inside the block if the matrices have few rows; the setting before is put back after it."""
    if n_rows >= FEW_ROWS:
        yield
        return
    before = torch.get_num_threads()
    with _controller().limit(limits=1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
