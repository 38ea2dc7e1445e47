"""Classification of a million rows in Parquet: a discriminant on landmarks, and linear classifiers on kernel features.

Run as `python -m benchmarks covertype_rows [--rows N] [--contestants NAME,...] [--one-thread] [--quick]`. Rows of
CoverType, 54 standardized columns in single precision, are drawn with replacement and get noise of a tenth of a
deviation. 15 000 other rows are for the test. All contestants have 1000 landmarks or 1000 features, the same files and
a fresh process, with the threads that their libraries choose, or with one thread under `--one-thread`.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, text, verdict
from benchmarks.cluster import peak_mb
from experiments.report import print_table

ROWS, QUICK_ROWS, LANDMARKS, QUICK_LANDMARKS = 1_000_000, 5000, 1000, 50
JUDGED, NOISE, SEED = 15_000, 0.1, 0
ROWS_A_FILE, ROWS_A_GROUP, ROWS_A_BATCH = 500_000, 50_000, 10_000
OURS, PEERS = "KernelDiscriminant", ("RBFSampler", "Nystroem")
LEAST_SPEED = 2.0


def write_rows(folder: str, n: int) -> None:
    """Write n training rows as Parquet, and the test rows as judged.npz."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mercer import datasets

    data = datasets.load("covtype")
    random = np.random.default_rng(SEED)
    order = random.permutation(len(data.X))
    X = data.X.astype(np.float32)
    deviations = X[order[JUDGED:]].std(axis=0)
    X = (X - X[order[JUDGED:]].mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    np.savez(Path(folder) / "judged.npz", X=X[order[:JUDGED]], y=data.y[order[:JUDGED]])
    for number, start in enumerate(range(0, n, ROWS_A_FILE)):
        drawn = random.choice(order[JUDGED:], min(ROWS_A_FILE, n - start))
        noisy = X[drawn] + np.float32(NOISE) * random.standard_normal((len(drawn), X.shape[1]), dtype=np.float32)
        columns = {f"x{j}": noisy[:, j] for j in range(X.shape[1])} | {"label": data.y[drawn].astype(np.int8)}
        pq.write_table(pa.table(columns), Path(folder) / f"part-{number:04}.parquet", row_group_size=ROWS_A_GROUP)


def judged(folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the test rows and their classes."""
    with np.load(Path(folder) / "judged.npz") as kept:
        return kept["X"], kept["y"]


def fit(folder: str, contestant: str, m: int, threads: int | None) -> dict[str, Any]:
    """Fit a contestant in this process; return seconds, CPU seconds, peak memory and accuracy."""
    import torch
    from threadpoolctl import threadpool_limits

    if threads is not None:
        torch.set_num_threads(threads)
    learn = learn_discriminant if contestant == OURS else learn_by_steps
    with threadpool_limits(threads):
        start, cpu = time.perf_counter(), time.process_time()
        predict = learn(folder, contestant, m)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        X, y = judged(folder)
        accuracy = float(np.mean(predict(X) == y))
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak_mb(), "accuracy": accuracy}


def learn_discriminant(folder: str, contestant: str, m: int) -> Any:
    """Return the predictor of a discriminant with a Gaussian kernel that chooses its bandwidth and ridge."""
    import pandas as pd

    from mercer import KernelDiscriminant
    from mercer.rows import open_rows

    rows = open_rows(folder)
    model = KernelDiscriminant("gaussian", n_landmarks=m, random_state=SEED)
    model.fit(rows.without("label"), rows.column("label"))
    return lambda X: model.predict(pd.DataFrame(X, columns=model.feature_names_in_))


def learn_by_steps(folder: str, contestant: str, m: int) -> Any:
    """Return the predictor of a linear classifier after one pass of steps on random features or Nyström's."""
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier

    first = next(blocks(folder))[0]
    kind = {"RBFSampler": RBFSampler, "Nystroem": Nystroem}[contestant]
    features = kind(gamma=1.0 / (first.shape[1] * first.var()), n_components=m, random_state=SEED).fit(first)
    classes, model = np.unique(judged(folder)[1]), SGDClassifier(loss="log_loss", random_state=SEED)
    for X, label in blocks(folder):
        model.partial_fit(features.transform(X), label, classes=classes)
    return lambda X: model.predict(features.transform(X))


def blocks(folder: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of the files with their classes, in batches."""
    import pyarrow.parquet as pq

    for file in sorted(Path(folder).glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(ROWS_A_BATCH):
            frame = batch.to_pandas()
            label = frame.pop("label")
            yield frame.to_numpy(), label.to_numpy()


def judge(fits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on seconds and accuracy compared with each peer."""
    by = {each["contestant"]: each for each in fits}
    claims = []
    for peer in [name for name in by if name != OURS] if OURS in by else []:
        for what in ("seconds", "cpu_seconds"):
            claim = f"{peer} and SGDClassifier: their {what.replace('_', ' ')} over ours"
            claims.append(verdict(claim, by[peer][what] / by[OURS][what], at_least=LEAST_SPEED))
        gain = by[OURS]["accuracy"] - by[peer]["accuracy"]
        claims.append(verdict(f"{peer} and SGDClassifier: our accuracy less theirs", gain, at_least=0.0))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Write the files, fit all contestants, and print the comparison."""
    parser = options("covertype_rows", f"{QUICK_ROWS} rows and {QUICK_LANDMARKS} landmarks")
    parser.add_argument("--rows", type=int, help=f"rows ({ROWS})")
    parser.add_argument("--contestants", default=",".join((OURS, *PEERS)), help="names, separated by commas")
    parser.add_argument("--one-thread", action="store_true", help="one thread for everybody")
    args = parser.parse_args(argv)
    load = load_at_start()
    n = args.rows or (QUICK_ROWS if args.quick else ROWS)
    m = QUICK_LANDMARKS if args.quick else LANDMARKS
    fits = []
    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, n)
        for contestant in args.contestants.split(","):
            asked = {"folder": folder, "contestant": contestant, "m": m, "threads": 1 if args.one_thread else None}
            found = fresh_process.call("covertype_rows", "fit", default_threads=True, **asked)
            fits.append({"contestant": contestant, "rows": n, "landmarks": m, "threads": asked["threads"], **found})
            print("{contestant:18} {seconds:.1f} s, {cpu_seconds:.1f} of CPU, {accuracy:.4f}".format(**fits[-1]))
    columns = ("contestant", "seconds", "CPU seconds", "peak MB", "accuracy")
    cells = [
        (
            each["contestant"],
            text(each["seconds"]),
            text(each["cpu_seconds"]),
            text(each["peak_mb"], 4),
            text(each["accuracy"], 4),
        )
        for each in fits
    ]
    print_table(f"covertype_rows: {n} rows", columns, cells)
    claims = judge(fits)
    print_claims(claims)
    keep(args.out, file_name("covertype_rows", args), load, fits=fits, claims=claims)
    return 0
