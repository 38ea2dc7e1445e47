"""Tasks of workers keep freed memory from block to block: fewer pages are mapped, and all is returned at the end."""

import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import numpy as np
from mercer.rows.freed_memory import freed_memory_is_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with freed_memory_is_kept():
    with freed_memory_is_kept():
        faults()
    kept = faults()
print(kept, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_pages_are_mapped_once_inside_and_each_time_outside():
    environment = {"MALLOC_TRIM_THRESHOLD_": "65536", "PATH": "", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
    inside, outside = map(int, run.stdout.split())
    assert 4 * inside < outside  # NumPy asks for large pages where it can, so that the numbers are not those of arrays


def test_nothing_is_done_without_the_variable(monkeypatch):
    from mercer.rows import freed_memory

    monkeypatch.delenv(freed_memory.VARIABLE, raising=False)
    monkeypatch.setattr(freed_memory, "_glibc", lambda: pytest.fail("the C library was asked"))
    with freed_memory.freed_memory_is_kept():
        assert freed_memory._GUARD.depth == 0
