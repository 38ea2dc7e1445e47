"""Settings of the test run: one thread each, so that two workers share two cores and sums have one order; a cluster."""

import pytest
import torch
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


@pytest.fixture
def two_threads():
    """Two threads of torch for one test, where the test run has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def client():
    """A small cluster: a scheduler, and two worker processes that it reaches over TCP."""
    distributed = pytest.importorskip("distributed")
    options = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
