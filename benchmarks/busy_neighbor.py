"""Threads: a fit with default threads beside a busy process, and the threads of a grid search's workers.

Run as `python -m benchmarks busy_neighbor [--repeats 3] [--rows 1000] [--quick] [--out DIR]`. A default fit runs alone
on one core, and with default threads while another process keeps a core busy; both in fresh processes, in turn. A grid
search then runs on two workers. The number of threads that torch and BLAS are set to in a worker, times the number of
workers, must not exceed the number of cores. The running threads of the workers are counted from Linux's /proc.
"""

import os
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, verdict
from benchmarks.contestants import OURS, regressor
from benchmarks.made_tables import uniform_rows
from experiments.report import print_table

ROWS, QUICK_ROWS = 1000, 60
# Half of these rows are training rows, more than the number below which the library always uses one thread.
SEARCH_ROWS, QUICK_SEARCH_ROWS, FOLDS, WORKERS, COLUMNS = 3000, 80, 2, 2, 10
MOST_RATIO = 1.5
SECONDS_BETWEEN_LOOKS = 0.02


# ---- beside a busy process ------------------------------------------------------------------------------------------


@contextmanager
def busy_process() -> Iterator[None]:
    """Run a process that keeps one core busy while the block runs."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def default_fit(method: str, n: int, on_one_core: bool) -> dict[str, float]:
    """Fit in this process with the threads that the libraries choose, which is one thread on one core."""
    if on_one_core:  # before the libraries are loaded, since they count the cores then
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    rows, model = uniform_rows("friedman", n, COLUMNS, 0), regressor(method)
    start, start_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.y)
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}


# ---- a grid search --------------------------------------------------------------------------------------------------


def threads_here(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Score a model, and return the numbers of threads of torch and of the largest other pool of this process."""
    import torch
    from threadpoolctl import threadpool_info

    pools = [pool["num_threads"] for pool in threadpool_info()]
    return {"score": model.score(X, y), "torch": torch.get_num_threads(), "pools": max(pools, default=1)}


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            if int(path.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(path.parent.name))
    return found


def running_threads(process: int) -> int:
    """Return the number of threads of a process that run or are ready to run; threads that wait in a loop count too."""
    states = []
    for path in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):
            states.append(path.read_text().rpartition(")")[2].split()[0])
    return states.count("R")


@contextmanager
def looks_at_children() -> Iterator[list[int]]:
    """Count the running threads of all children repeatedly while the block runs; yield the growing list of counts."""
    counts: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(SECONDS_BETWEEN_LOOKS):
            counts.append(sum(map(running_threads, children(os.getpid()))))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield counts
    finally:
        done.set()
        looking.join()


def grid_search(n: int) -> dict[str, Any]:
    """Run a grid search on two workers from this process, and count their threads."""
    from sklearn.model_selection import GridSearchCV

    rows, metrics = uniform_rows("friedman", n, COLUMNS, 0), ["identity", "ard"]
    search = GridSearchCV(
        regressor("RFMRegressor"), {"metric": metrics}, cv=FOLDS, n_jobs=WORKERS, scoring=threads_here, refit=False
    )
    start = time.perf_counter()
    with looks_at_children() as counts:
        search.fit(rows.X, rows.y)
    seconds, cores, found = time.perf_counter() - start, len(os.sched_getaffinity(0)), search.cv_results_
    return {
        **{of: int(max(found[f"split{fold}_test_{of}"].max() for fold in range(FOLDS))) for of in ("torch", "pools")},
        "seconds": seconds,
        "workers": WORKERS,
        "cores": cores,
        "looks": len(counts),
        "most_running": max(counts, default=0),
        "looks_above_cores": sum(count > cores for count in counts),
    }


# ---- the command ----------------------------------------------------------------------------------------------------


def judge(fits: Sequence[dict[str, Any]], search: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the verdicts on the ratio of the median seconds, and on the threads of all workers."""
    claims = []
    for method in dict.fromkeys(fit["method"] for fit in fits):
        alone, beside = (
            statistics.median(fit["seconds"] for fit in fits if fit["method"] == method and fit["busy"] == busy)
            for busy in (False, True)
        )
        claim = f"{method}: seconds beside a busy process over those alone on one core"
        claims.append(verdict(claim, beside / alone, MOST_RATIO))
    for of in ("torch", "pools"):
        claim = f"grid search: threads of a worker ({of}) times {search['workers']} workers"
        claims.append(verdict(claim, search[of] * search["workers"], search["cores"]))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit alone and with a busy process, search on two workers, and print the verdicts."""
    parser = options("busy_neighbor", f"{QUICK_ROWS} rows, once")
    parser.add_argument("--repeats", type=int, help="rounds (3)")
    parser.add_argument("--rows", type=int, help=f"rows of the fits ({ROWS})")
    args = parser.parse_args(argv)
    if not hasattr(os, "sched_setaffinity"):
        raise SystemExit("busy_neighbor needs Linux: it binds a process to a core and reads /proc")
    load, n = load_at_start(), args.rows or (QUICK_ROWS if args.quick else ROWS)
    fits = []
    for _ in range(args.repeats or (1 if args.quick else 3)):
        for method in OURS:
            for busy in (False, True):
                task = {"method": method, "n": n, "on_one_core": not busy}
                with busy_process() if busy else nullcontext():
                    found = fresh_process.call("busy_neighbor", "default_fit", default_threads=True, **task)
                fits.append({"method": method, "n": n, "busy": busy, **found})
                place = "beside a busy process" if busy else "alone on one core"
                print(
                    f"{method:14} {place:21}: {found['seconds']:.2f} s, {found['cpu_seconds']:.2f} of CPU", flush=True
                )
    size = QUICK_SEARCH_ROWS if args.quick else SEARCH_ROWS
    search = fresh_process.call("busy_neighbor", "grid_search", default_threads=True, n=size)
    print("grid search: {seconds:.1f} s, at most {most_running} threads running at a time".format(**search), flush=True)
    columns = ("torch", "pools", "workers", "cores", "most_running", "looks_above_cores", "looks")
    print_table("busy_neighbor: threads of a grid search", columns, [tuple(str(search[of]) for of in columns)])
    claims = judge(fits, search)
    print_claims(claims)
    keep(args.out, file_name("busy_neighbor", args), load, fits=fits, grid_search=search, claims=claims)
    return 0
