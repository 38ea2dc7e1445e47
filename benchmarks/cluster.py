"""Rows in Parquet that may not fit into memory: seconds and peak memory of fits, in one process and on Dask's workers.

Run as `python -m benchmarks cluster [--rows N,...] [--landmarks M] [--models NAME,...] [--workers 0,2] [--quick]`. The
files are generated first and kept in a temporary folder during the run: 30 uniform columns, Friedman's function with
noise, and as class whether it is above its mean. Every fit has a fresh process with one thread. Its seconds are those
of `fit` alone; workers load what they need before. The peers learn the classes from the same files, by random features
or Nyström's and gradient steps of a linear classifier.
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, ratio, text, verdict
from benchmarks.made_tables import uniform_rows
from experiments.report import print_table

ROWS, QUICK_ROWS, COLUMNS, LANDMARKS, QUICK_LANDMARKS = (100_000, 1_000_000, 10_000_000), (3000,), 30, 1000, 50
ROWS_A_FILE, ROWS_A_GROUP, FRESH_ROWS = 500_000, 50_000, 10_000
MODELS = ("RFMRegressor", "KernelDiscriminant", "KernelEmbedding")
PEERS = ("RBFSampler", "Nystroem")
# One epoch of gradient steps, which are made in one process wherever the rows are. It is fitted only if named.
BY_STEPS = "SimCLR"
MOST_MB, MOST_OVERHEAD, LEAST_GAIN, MOST_GROWTH, LEAST_SPEED = 2000.0, 1.15, 1.6, 1.1, 2.0
MEAN = 14.4  # of the function


def write_rows(folder: str, n: int) -> None:
    """Write n rows as Parquet, with half a million rows in each file, in row groups of 50 000."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, start in enumerate(range(0, n, ROWS_A_FILE)):
        X, y, _ = uniform_rows("friedman_and_a_wave", min(ROWS_A_FILE, n - start), COLUMNS, seed=number)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y, "label": (y > MEAN).astype(np.int8)}
        pq.write_table(pa.table(columns), Path(folder) / f"part-{number:04}.parquet", row_group_size=ROWS_A_GROUP)


def asked_model(model: str, m: int) -> Any:
    """Return the estimator before its fit, with settings under which the sums over rows are most of the work."""
    import mercer
    from mercer.embedding import Steps

    if model == "RFMRegressor":
        return mercer.RFMRegressor("laplace", "identity", warp="none", n_landmarks=m, random_state=0)
    if model == "KernelDiscriminant":
        return mercer.KernelDiscriminant("laplace", n_landmarks=m, random_state=0)
    if model == BY_STEPS:
        steps = Steps(epochs=1, redraw=True)
        options = {"augment": "noise", "n_landmarks": m, "n_components": 20, "random_state": 0}
        return mercer.KernelEmbedding("simclr", "gaussian", solver=steps, **options)
    return mercer.KernelEmbedding("kernel_pca", "gaussian", n_landmarks=m, n_components=20, random_state=0)


def fit(folder: str, model: str, m: int, n_workers: int = 0) -> dict[str, Any]:
    """Fit in this process, or on workers with one thread and 2 GB each; return seconds, peak memory and score."""
    import torch

    torch.set_num_threads(1)
    if n_workers == 0:
        return fit_to(folder, model, m, None)
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "memory_limit": "2GB", "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.run(loaded)
        return fit_to(folder, model, m, client)


def loaded() -> None:
    """Load what tasks need, so that this is not part of the time of a fit."""
    import torch

    import mercer.rows  # noqa: F401

    torch.set_num_threads(1)


def fit_to(folder: str, model: str, m: int, client: Any) -> dict[str, Any]:
    """Fit, and return the seconds, the peak memory of this process and of the workers in MB, and the score."""
    from mercer.rows import open_rows

    rows = open_rows(folder, client=client)
    target = "label" if model == "KernelDiscriminant" else "y"
    start, cpu = time.perf_counter(), time.process_time()
    fitted = asked_model(model, m).fit(rows.without("y", "label"), rows.column(target))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peaks = list(client.run(peak_mb).values()) if client is not None else []
    X, y, _ = uniform_rows("friedman_and_a_wave", FRESH_ROWS, COLUMNS, seed=0, fresh=True)
    import pandas as pd

    X = pd.DataFrame(X, columns=fitted.feature_names_in_)
    scores = {"RFMRegressor": y, "KernelDiscriminant": (y > MEAN).astype(np.int8)}
    score = float(fitted.score(X, scores[model])) if model in scores else None
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak_mb(), "worker_mb": peaks, "score": score}


def peak_mb() -> float:
    """Return the peak of the resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit_peer(folder: str, peer: str, m: int) -> dict[str, Any]:
    """Fit random features or Nyström's and a linear classifier by gradient steps, on the same files."""
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        import pyarrow.parquet as pq

        for file in sorted(Path(folder).glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(10_000):
                frame = batch.to_pandas()
                yield frame[[f"x{j}" for j in range(COLUMNS)]].to_numpy(), frame["label"].to_numpy()

    start = time.perf_counter()
    first = next(blocks())[0]
    gamma = 1.0 / (COLUMNS * first.var())
    kind = {"RBFSampler": RBFSampler, "Nystroem": Nystroem}[peer]
    features = kind(gamma=gamma, n_components=m, random_state=0).fit(first)
    model = SGDClassifier(loss="log_loss", random_state=0)
    for X, label in blocks():
        model.partial_fit(features.transform(X), label, classes=[0, 1])
    seconds = time.perf_counter() - start
    X, y, _ = uniform_rows("friedman_and_a_wave", FRESH_ROWS, COLUMNS, seed=0, fresh=True)
    return {"seconds": seconds, "peak_mb": peak_mb(), "score": model.score(features.transform(X), y > MEAN)}


def judge(fits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on memory, growth, workers and peers, at the largest number of rows."""
    most = max((each["rows"] for each in fits), default=0)
    by = {(each["model"], each["rows"], each["workers"]): each for each in fits}
    peers = [each for each in fits if each["model"] in PEERS and each["rows"] == most]
    claims = []
    for model in dict.fromkeys(each["model"] for each in fits if each["model"] in (*MODELS, BY_STEPS)):
        case = f"{model}, {most} rows"
        here = by.get((model, most, 0), {})
        claims.append(verdict(f"{case}: peak memory in one process, MB", here.get("peak_mb"), MOST_MB))
        sizes = sorted(rows for of, rows, workers in by if of == model and workers == 0)
        if len(sizes) > 1:
            before = by[model, sizes[-2], 0]
            growth = ratio(here["cpu_seconds"] / sizes[-1], before["cpu_seconds"] / sizes[-2])
            claims.append(verdict(f"{case}: CPU seconds a row over those of {sizes[-2]} rows", growth, MOST_GROWTH))
        one, two = (by.get((model, most, workers), {}).get("seconds") for workers in (1, 2))
        if one is not None or two is not None:
            claims.append(
                verdict(f"{case}: one worker over one process", ratio(one, here.get("seconds")), MOST_OVERHEAD)
            )
            claims.append(verdict(f"{case}: one worker over two", ratio(one, two), at_least=LEAST_GAIN))
    ours = by.get(("KernelDiscriminant", most, 0))
    for peer in peers if ours is not None else []:
        case = f"KernelDiscriminant, {most} rows, {peer['model']} and SGDClassifier"
        claims.append(
            verdict(f"{case}: their seconds over ours", peer["seconds"] / ours["seconds"], at_least=LEAST_SPEED)
        )
        claims.append(verdict(f"{case}: our accuracy less theirs", ours["score"] - peer["score"], at_least=0.0))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Write the files, fit all contestants, and print the comparison."""
    parser = options("cluster", f"{QUICK_ROWS[0]} rows and {QUICK_LANDMARKS} landmarks")
    parser.add_argument("--rows", help="numbers of rows, separated by commas " + str(ROWS))
    parser.add_argument("--landmarks", type=int, help=f"landmarks ({LANDMARKS})")
    parser.add_argument("--models", default=",".join((*MODELS, *PEERS)), help="contestants, separated by commas")
    parser.add_argument("--workers", default="0,1,2", help="numbers of workers, separated by commas; 0 is one process")
    args = parser.parse_args(argv)
    load = load_at_start()
    sizes = QUICK_ROWS if args.quick else ROWS
    if args.rows:
        sizes = tuple(int(part) for part in args.rows.split(","))
    m = args.landmarks or (QUICK_LANDMARKS if args.quick else LANDMARKS)
    fits = []
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
            write_rows(folder, n)
            for model in args.models.split(","):
                for workers in (0,) if model in (*PEERS, BY_STEPS) else map(int, args.workers.split(",")):
                    fits.append({"model": model, "rows": n, "landmarks": m, "workers": workers})
                    if model in PEERS:
                        fits[-1] |= fresh_process.call("cluster", "fit_peer", folder=folder, peer=model, m=m)
                    else:
                        fits[-1] |= fresh_process.call(
                            "cluster", "fit", folder=folder, model=model, m=m, n_workers=workers
                        )
                    print("{model:18} {rows} rows, {workers} workers: {seconds:.1f} s".format(**fits[-1]), flush=True)
    columns = ("model", "rows", "workers", "seconds", "CPU seconds", "peak MB", "of a worker", "score")
    cells = [
        (
            each["model"],
            str(each["rows"]),
            str(each["workers"]),
            text(each["seconds"]),
            text(each.get("cpu_seconds")),
            text(each["peak_mb"], 4),
            text(max(each.get("worker_mb") or [0.0]) or None, 4),
            text(each["score"], 4),
        )
        for each in fits
    ]
    print_table("cluster", columns, cells)
    claims = judge(fits)
    print_claims(claims)
    keep(args.out, file_name("cluster", args), load, fits=fits, claims=claims)
    return 0
