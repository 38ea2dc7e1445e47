"""A small cluster for all tests of this folder: a scheduler, and two worker processes that it reaches over TCP."""

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
