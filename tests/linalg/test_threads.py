"""Numbers of threads: one for small work, restored whoever leaves last, and tasks side by side."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from mercer.linalg import in_parallel, one_thread, threads_for
from mercer.linalg.threads import FEW_ROWS


def pools():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_work_has_one_thread_and_large_work_what_was_set(two_threads):
    with threads_for(FEW_ROWS):
        assert torch.get_num_threads() == 2
    with threads_for(FEW_ROWS - 1):
        assert torch.get_num_threads() == 1
        assert pools() == {1}
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


OPENMP_OF_SCIKIT_LEARN = """
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as team  # before torch
from threadpoolctl import threadpool_limits
from mercer.linalg import one_thread

with threadpool_limits(2, user_api="openmp"):
    before = team()
    with one_thread():
        inside = team()
    print(before, inside, team())
"""


def test_scikit_learn_has_one_thread_too_and_gets_its_own_back():
    """Its OpenMP is a library of its own where it was loaded before torch's, whose setting does not reach it then."""
    done = subprocess.run([sys.executable, "-c", OPENMP_OF_SCIKIT_LEARN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1", "2"]


def test_an_error_puts_the_setting_back(two_threads):
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


def test_whoever_leaves_last_puts_the_setting_back(two_threads):
    before = pools()
    entered, leave = threading.Event(), threading.Event()

    def stay_longer():
        with one_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=stay_longer)
    with one_thread():
        other.start()
        entered.wait(10)
    # The first to enter is gone, the second still inside.
    assert pools() == {1}
    leave.set()
    other.join()
    assert torch.get_num_threads() == 2
    assert pools() == before


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_results_come_in_the_order_of_the_items(n_jobs, two_threads):
    threads = set()

    def square(i):
        threads.add(threading.get_ident())
        time.sleep(0.05)  # long enough for the second thread to begin
        A = np.full((50, 50), float(i))
        return float((A @ A)[0, 0])

    assert in_parallel(square, iter(range(6)), n_jobs) == [50.0 * i * i for i in range(6)]
    assert torch.get_num_threads() == 2
    assert (len(threads) == 1) == (n_jobs in (None, 1))
    assert in_parallel(square, [], n_jobs) == []


def test_an_error_of_a_task_is_raised():
    def fail(i):
        raise KeyError(i)

    with pytest.raises(KeyError):
        in_parallel(fail, [1, 2, 3], 2)
