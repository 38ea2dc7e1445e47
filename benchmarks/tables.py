"""Regression of real tables: errors and seconds of Mercer's defaults, CatBoost, LightGBM and xRFM.

Run as `python -m benchmarks tables [--only NAME,...] [--methods NAME,...] [--rows N] [--folds one|all] [--out DIR]`.
Every fit runs on one thread. The tables are those of `$MERCER_DATA/tables`: their column `fold` is a fixed split, fold
0 is the test, and tables below 1000 rows are run on all ten folds. What was measured is kept line by line in a journal,
so that a stopped run continues where it was.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bounds import keep, load_at_start
from benchmarks.contestants import one_thread, regressor
from benchmarks.harness import ROOT
from benchmarks.journal import Journal
from benchmarks.made_tables import rmse
from experiments.report import print_table
from mercer.metrics import mean_ranks

MOST_TRAIN, MOST_TEST, ALL_FOLDS_BELOW = 2000, 2000, 1000
# Ratios to CatBoost are clipped to this range before their geometric mean is taken, so that no single table dominates.
CLIP = (0.5, 2.0)
# Tables whose target is a function of other columns; means are also given without them.
DETERMINISTIC = ("number_bike", "number_bodyfat")
LEVEL = 0.9

Outcome = dict[str, Any]


def folder() -> Path:
    """Return the folder of the tables."""
    data = os.environ.get("MERCER_DATA")
    if not data:
        raise SystemExit("set MERCER_DATA to the folder that holds tables/")
    return Path(data) / "tables"


def categorical(frame: Any) -> list[str]:
    """Return the names of the columns that are not numeric."""
    import pandas as pd

    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def split(frame: Any, fold: int, most_rows: int) -> tuple[Any, Any]:
    """Return training and test rows for a fold, with at most `most_rows` of each, drawn with seed 0."""
    random = np.random.default_rng(0)
    test, train = np.flatnonzero(frame.fold == fold), np.flatnonzero(frame.fold != fold)
    train = np.sort(random.permutation(train)[:most_rows])
    test = np.sort(random.permutation(test)[:MOST_TEST])
    columns = frame.drop(columns=["fold"])
    return columns.iloc[train], columns.iloc[test]


def numbers_of(train: Any, test: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both tables as numbers for peers without categories, with indicators, and medians for missing values."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    words = categorical(train)
    numbers = [name for name in train if name not in words and train[name].notna().any()]
    encoder = make_column_transformer(
        (SimpleImputer(strategy="median"), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=2), words),
    ).fit(train)
    return np.asarray(encoder.transform(train), dtype=float), np.asarray(encoder.transform(test), dtype=float)


# ---- contestants: (training rows, targets, test rows, their targets) -> seconds and the prediction ------------------


def fit_mercer(name: str, train: Any, y: np.ndarray, test: Any, targets: np.ndarray) -> Outcome:
    """Fit an estimator of Mercer with its defaults, by `tabular`."""
    import warnings

    import mercer

    model = mercer.tabular(regressor(name))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train, y)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    mean = model.predict(test)
    outcome = {"seconds": seconds, "predict_seconds": time.perf_counter() - start, "prediction": mean}
    if name.startswith("GP"):
        lower, upper = model.predict_interval(test, LEVEL).T
        outcome["coverage"] = float(np.mean((lower <= targets) & (targets <= upper)))
        outcome["nll"] = -float(np.mean(model.log_density(test, targets)))
    return outcome


def fit_catboost(train: Any, y: np.ndarray, test: Any, targets: np.ndarray) -> Outcome:
    """Fit CatBoost's defaults, with its own treatment of categories."""
    words = categorical(train)
    train, test = with_words(train, words), with_words(test, words)
    model = regressor("CatBoost", cat_features=words)
    return timed(lambda: model.fit(train, y), lambda: model.predict(test))


def with_words(frame: Any, words: list[str]) -> Any:
    """Return a table with its categories as text, as CatBoost requires; a missing value is a category."""
    return frame.assign(**{word: frame[word].astype(object).fillna("?").astype(str) for word in words})


def with_kinds(train: Any, test: Any) -> tuple[Any, Any]:
    """Return both tables with pandas categories and plain names, as LightGBM requires."""
    import pandas as pd

    for word in categorical(train):
        kind = pd.CategoricalDtype(train[word].astype(object).dropna().astype(str).unique())
        train = train.assign(**{word: train[word].astype(object).map(str, na_action="ignore").astype(kind)})
        test = test.assign(**{word: test[word].astype(object).map(str, na_action="ignore").astype(kind)})
    plain = {name: f"c{i}" for i, name in enumerate(train)}  # it takes no special characters in names
    return train.rename(columns=plain), test.rename(columns=plain)


def fit_lightgbm(train: Any, y: np.ndarray, test: Any, targets: np.ndarray) -> Outcome:
    """Fit LightGBM's defaults, with its own treatment of categories."""
    train, test = with_kinds(train, test)
    model = regressor("LightGBM")
    return timed(lambda: model.fit(train, y), lambda: np.asarray(model.predict(test)))


def fit_xrfm(train: Any, y: np.ndarray, test: Any, targets: np.ndarray) -> Outcome:
    """Fit xRFM's defaults as its README does: standardized columns and a fifth of the rows for validation."""
    import torch
    from sklearn.model_selection import train_test_split
    from xrfm import xRFM

    X, X_test = numbers_of(train, test)
    mean, std = X.mean(axis=0), X.std(axis=0)
    X, X_test = (((part - mean) / np.where(std > 0, std, 1.0)).astype(np.float32) for part in (X, X_test))
    center, scale = y.mean(), y.std()
    y = ((y - center) / scale).astype(np.float32)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
    model = xRFM(device=torch.device("cpu"), tuning_metric="mse", random_state=0, verbose=False)
    return timed(
        lambda: model.fit(X, y, X_val, y_val),
        lambda: np.asarray(model.predict(X_test), dtype=float).ravel() * scale + center,
    )


def timed(fit: Callable[[], Any], predict: Callable[[], np.ndarray]) -> Outcome:
    """Return the seconds of the fit and of the prediction, and the prediction."""
    start = time.perf_counter()
    fit()
    fitted = time.perf_counter()
    prediction = predict()
    return {
        "seconds": fitted - start,
        "predict_seconds": time.perf_counter() - fitted,
        "prediction": np.asarray(prediction, dtype=float),
    }


CONTESTANTS: dict[str, Callable[..., Outcome]] = {
    "GPRegressor": lambda *parts: fit_mercer("GPRegressor", *parts),
    "RFMRegressor": lambda *parts: fit_mercer("RFMRegressor", *parts),
    "CatBoost": fit_catboost,
    "LightGBM": fit_lightgbm,
    "xRFM": fit_xrfm,
}


# ---- runs -----------------------------------------------------------------------------------------------------------


def cases(only: list[str], folds: str, kind: str = "number") -> Iterator[tuple[str, int]]:
    """Yield (table, fold) for tables with this kind of target, first fold 0 of every table."""
    import pyarrow.parquet

    names = [path.stem for path in sorted(folder().glob(f"{kind}_*.parquet")) if not only or path.stem in only]
    sizes = {name: pyarrow.parquet.read_metadata(folder() / f"{name}.parquet").num_rows for name in names}
    yield from ((name, 0) for name in names)
    if folds == "all":
        small = [name for name in names if sizes[name] < ALL_FOLDS_BELOW]
        yield from ((name, fold) for fold in range(1, 10) for name in small)


class Fold(NamedTuple):
    """The training rows and the test rows, with their targets."""

    train: Any
    y: np.ndarray
    test: Any
    targets: np.ndarray


def fold_of(table: str, fold: int, most_rows: int) -> Fold:
    """Return one fold of one table."""
    import pandas as pd

    train, test = split(pd.read_parquet(folder() / f"{table}.parquet"), fold, most_rows)
    y, targets = (part.target.to_numpy(float) for part in (train, test))
    return Fold(train.drop(columns="target"), y, test.drop(columns="target"), targets)


def run(table: str, fold: int, method: str, most_rows: int) -> Outcome:
    """Fit one contestant on one fold of one table."""
    rows = fold_of(table, fold, most_rows)
    with one_thread():
        outcome = CONTESTANTS[method](*rows)
    prediction = outcome.pop("prediction")
    return {"n": len(rows.y), **outcome, "rmse": rmse(prediction, rows.targets)}


def main(argv: list[str] | None = None) -> int:
    """Run the selected tables and contestants, and print the comparison."""
    line = "{table:20} {fold} {method:14} rmse {rmse:.4g} in {seconds:.1f} s"
    return compare("tables", "number", CONTESTANTS, run, line, summary, argv)


def compare(
    benchmark: str,
    kind: str,
    contestants: Mapping[str, Any],
    run: Callable[..., Outcome],
    line: str,
    summary: Callable[[list[Outcome]], dict[str, Any]],
    argv: list[str] | None,
) -> int:
    """Run contestants on the folds of tables, as the command line asks, and print the comparison.

    Parameters
    ----------
    benchmark : str
        Its name on the command line.
    kind : {"number", "class"}
        The kind of target of the tables.
    contestants : mapping
        Their names.
    run : callable
        A function of table, fold, method and most_rows that returns the measures.
    line : str
        The format of the line that is printed for a measurement.
    summary : callable
        A function of all measurements that returns the number of tables, and the columns and rows of the comparison.
    argv : list of str or None
    """
    parser = argparse.ArgumentParser(f"python -m benchmarks {benchmark}")
    parser.add_argument("--only", default="", help="tables, separated by commas")
    parser.add_argument("--methods", default=",".join(contestants), help="contestants, separated by commas")
    parser.add_argument("--rows", type=int, default=MOST_TRAIN, help="most rows to learn from (2000)")
    parser.add_argument("--folds", choices=("one", "all"), default="all")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    parser.add_argument("--label", default="", help="a word for the file's name")
    args = parser.parse_args(argv)
    load = load_at_start()
    name = f"{benchmark}-{args.rows}" + (f"-{args.label}" if args.label else "")
    journal = Journal(args.out / f"{name}.jsonl", "table", "fold", "method")
    lines = [
        journal.entry(partial(run, most_rows=args.rows), line, table=table, fold=fold, method=method)
        for table, fold in cases([each for each in args.only.split(",") if each], args.folds, kind)
        for method in args.methods.split(",")
    ]
    found = summary(lines)
    print_table(f"{name}: {found['tables']} tables", ("method", *found["columns"]), found["rows"])
    keep(args.out, name, load, runs=lines, summary=found)
    return 0


# ---- comparison -----------------------------------------------------------------------------------------------------


def means(lines: list[dict[str, Any]], value: str) -> dict[str, dict[str, float]]:
    """Return the mean of a value over the folds, by method and table."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        if value in line:
            found.setdefault(line["method"], {}).setdefault(line["table"], []).append(line[value])
    return {method: {table: float(np.mean(v)) for table, v in tables.items()} for method, tables in found.items()}


def geometric_ratio(scores: dict[str, float], base: dict[str, float], without: tuple[str, ...] = ()) -> float:
    """Return the geometric mean over the tables of the clipped ratio of two scores."""
    ratios = [scores[table] / base[table] for table in scores if table in base and table not in without]
    return float(np.exp(np.mean(np.log(np.clip(ratios, *CLIP))))) if ratios else float("nan")


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the comparison: ranks, ratios to CatBoost, seconds."""
    errors, seconds = means(lines, "rmse"), means(lines, "seconds")
    cover, nll = means(lines, "coverage"), means(lines, "nll")
    ranks = mean_ranks(errors)
    base, base_seconds = errors.get("CatBoost", {}), seconds.get("CatBoost", {})
    rows = []
    for method in errors:
        ratios = [seconds[method][t] / base_seconds[t] for t in seconds[method] if t in base_seconds]
        first = sum(all(errors[method][t] <= errors[o].get(t, np.inf) for o in errors) for t in errors[method])
        rows.append(
            (
                method,
                f"{ranks[method]:.2f}",
                str(first),
                f"{geometric_ratio(errors[method], base):.3f}",
                f"{geometric_ratio(errors[method], base, DETERMINISTIC):.3f}",
                f"{np.median(ratios) if ratios else np.nan:.2f}",
                f"{sum(seconds[method].values()):.0f}",
                f"{np.mean(list(cover[method].values())):.3f}" if method in cover else "",
                f"{np.mean(list(nll[method].values())):.3f}" if method in nll else "",
            )
        )
    columns = ("mean rank", "first", "ratio", "without two", "median time ratio", "seconds", "coverage", "nll")
    return {"tables": len(next(iter(errors.values()))), "columns": columns, "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
