"""The regressors that benchmarks compare, with their defaults on one thread, and a fit of one on a made table."""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from benchmarks.harness import with_peak_memory
from benchmarks.made_tables import rmse, uniform_rows

OURS = ("RFMRegressor", "GPRegressor")
PEERS = {"CatBoost": "catboost", "LightGBM": "lightgbm"}
SEED = 0


def installed(methods: Iterable[str]) -> list[str]:
    """Return the contestants that are installed; print a remark about each peer that is not."""
    methods = list(methods)
    unknown = [method for method in methods if method not in (*OURS, *PEERS)]
    if unknown:
        raise SystemExit(f"unknown contestants {unknown}; there are {[*OURS, *PEERS]}")
    missing = [method for method in methods if method in PEERS and find_spec(PEERS[method]) is None]
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}", file=sys.stderr)
    return [method for method in methods if method not in missing]


def regressor(name: str, **options: Any) -> Any:
    """Return an estimator with its defaults, except that it uses one thread, prints nothing and has a seed.

    Parameters
    ----------
    name : {"RFMRegressor", "GPRegressor", "CatBoost", "LightGBM"}
    **options
        Further parameters.
    """
    if name == "CatBoost":
        from catboost import CatBoostRegressor

        return CatBoostRegressor(verbose=0, thread_count=1, allow_writing_files=False, random_seed=SEED, **options)
    if name == "LightGBM":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_jobs=1, verbose=-1, random_state=SEED, **options)
    import mercer

    return getattr(mercer, name)(random_state=SEED, **options)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and every thread pool that has been loaded to one thread inside the block."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def fit_of(
    method: str,
    function: str,
    n: int,
    d: int,
    seed: int = 0,
    n_fresh: int = 2000,
    dtype: str = "float64",
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit one contestant on a made table in this process, and predict new rows.

    Parameters
    ----------
    method : str
        See `regressor`.
    function, n, d, seed, dtype
        See `made_tables.uniform_rows`.
    n_fresh : int, default=2000
        Rows to predict.
    options : dict or None, default=None
        Further parameters of the contestant.

    Returns
    -------
    dict
        Elapsed seconds and CPU seconds, the peak memory since the imports in MB (including the table; None if it cannot
        be measured), and the RMSE to the truth.
    """
    model = regressor(method, **(options or {}))

    def work() -> dict[str, float]:
        rows = uniform_rows(function, n, d, seed, dtype=dtype)
        start, start_cpu = time.perf_counter(), time.process_time()
        model.fit(rows.X, rows.y)
        return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}

    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, memory = with_peak_memory(work)
        fresh = uniform_rows(function, n_fresh, d, seed, fresh=True, dtype=dtype)
        error = rmse(model.predict(fresh.X), fresh.truth)
    return {**seconds, "peak_mb": memory.megabytes, "rmse": error}
