"""Fitted models of tables, CatBoost and LightGBM: bytes of their files, and seconds and memory of predictions.

Run as `python -m benchmarks table_models [--quick] [--out DIR]`. Models of Friedman's function of 10 columns are fitted
and saved in one process, and loaded in another one for predictions, on one thread. Models of 4000 rows must have small
files, and compute standard deviations of 1000 rows twice. Models of 20 000 rows predict 10 000 rows. Memory is the
growth of the process during the first prediction.
"""

import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import fresh_process
from benchmarks.bounds import file_name, keep, load_at_start, options, print_claims, text, verdict
from benchmarks.contestants import OURS, installed, one_thread, regressor
from benchmarks.harness import MB, with_peak_memory
from benchmarks.made_tables import uniform_rows
from experiments.report import print_table

COLUMNS = 10
# The number of training rows of a model, and the number of rows that it predicts.
SMALL, QUICK_SMALL, LARGE, QUICK_LARGE = (4000, 1000), (30, 20), (20_000, 10_000), (40, 100)
MOST_FILE_MB, MOST_SECONDS, MOST_MB = 5.0, 1.0, 500.0


def fit_and_save(method: str, n: int, path: str) -> dict[str, float]:
    """Fit a model in this process and save it as its library does."""
    import mercer

    rows, model = uniform_rows("friedman", n, COLUMNS, 0), regressor(method)
    start = time.perf_counter()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.y)
    seconds = time.perf_counter() - start
    if method in OURS:
        mercer.save(model, path)
    else:
        (model if method == "CatBoost" else model.booster_).save_model(path)
    machines = len(model.machines_) if method in OURS else 1
    return {"fit_seconds": seconds, "file_mb": Path(path).stat().st_size / MB, "machines": machines}


def loaded(method: str, path: str) -> Any:
    """Load a model from its file, and return its predictions as a function of rows."""
    if method == "CatBoost":
        model = regressor(method).load_model(path)
        return lambda X: model.predict(X, thread_count=1)
    if method == "LightGBM":
        from lightgbm import Booster

        booster = Booster(model_file=path)
        return lambda X: booster.predict(X, num_threads=1)
    import mercer

    return mercer.load(path).predict


def load_and_predict(method: str, path: str, n: int, with_std: bool) -> dict[str, float | None]:
    """Load a model in this process, and time two predictions of the same rows."""
    X = uniform_rows("friedman", n, COLUMNS, 0, fresh=True).X
    regressor(method)  # for its imports, which are no part of loading
    start = time.perf_counter()
    predict = loaded(method, path)
    seconds = [time.perf_counter() - start]
    options = {"return_std": True} if with_std else {}

    def timed() -> float:
        start = time.perf_counter()
        predict(X, **options)
        return time.perf_counter() - start

    with one_thread():
        first, memory = with_peak_memory(timed)
        seconds += [first, timed()]
    named = dict(zip(("load_seconds", "first_seconds", "second_seconds"), seconds, strict=True))
    return {**named, "peak_mb": memory.megabytes}


def judge(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts on the file of the smaller model, and on the predictions of the larger one."""
    claims = []
    for each in (each for each in found if each["method"] in OURS):
        case = f"{each['method']} of {each['n']} rows"
        if each["size"] == "small" and (each["std"] or each["method"] == "RFMRegressor"):
            claims.append(
                verdict(f"{case}, {each['machines']} machines: MB of its file", each["file_mb"], MOST_FILE_MB)
            )
        if each["size"] == "large" and not each["std"]:
            case = f"{case} predicts {each['predicted']}"
            claims.append(verdict(f"{case}: seconds", each["first_seconds"], MOST_SECONDS))
            claims.append(verdict(f"{case}: MB", each["peak_mb"], MOST_MB))
    return claims


def main(argv: list[str] | None = None) -> int:
    """Fit, save, load and predict with all contestants, and print the comparison."""
    args = options("table_models", f"models of {QUICK_SMALL[0]} and {QUICK_LARGE[0]} rows").parse_args(argv)
    load, found = load_at_start(), []
    sizes = {"small": QUICK_SMALL, "large": QUICK_LARGE} if args.quick else {"small": SMALL, "large": LARGE}
    with tempfile.TemporaryDirectory() as name:
        for size, (n, predicted) in sizes.items():
            for method in installed((*OURS, "CatBoost", "LightGBM") if size == "large" else OURS):
                file = str(Path(name) / f"{method}-{size}.mercer")
                fit = fresh_process.call("table_models", "fit_and_save", method=method, n=n, path=file)
                for std in (False, True) if method == "GPRegressor" else (False,):
                    task = {"method": method, "path": file, "n": predicted, "with_std": std}
                    asked = fresh_process.call("table_models", "load_and_predict", **task)
                    case = {"size": size, "method": method, "n": n, "predicted": predicted, "std": std}
                    found.append({**case, **fit, **asked})
                    line = "{method:14} of {n} rows ({file_mb:.2f} MB) predicts {predicted}{of}: {first_seconds:.3f} s"
                    print(line.format(**found[-1], of=" with std" * std), flush=True)
    values = ("machines", "file_mb", "load_seconds", "first_seconds", "second_seconds", "peak_mb")
    rows = [
        (e["method"] + " with std" * e["std"], str(e["n"]), str(e["predicted"]), *(text(e[of]) for of in values))
        for e in found
    ]
    columns = ("method", "rows", "predicted", "machines", "file MB", "load s", "first s", "second s", "peak MB")
    print_table("table_models", columns, rows)
    claims = judge(found)
    print_claims(claims)
    keep(args.out, file_name("table_models", args), load, models=found, claims=claims)
    return 0
