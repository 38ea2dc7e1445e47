"""`mercer fit --landmarks`: learn from Parquet files that may be larger than memory, in this process or on workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from mercer.app.cli.options import for_programs, named
from mercer.app.cli.output import notes, number, out_console, print_json, waiting
from mercer.app.cli.unread_options import refuse_unread
from mercer.app.files.tables import check_columns, check_model_output
from mercer.exceptions import invalid_parameter
from mercer.io import save
from mercer.rows import FileRows, gather_over_rows, open_rows

LANDMARKS = 1000
# At most this many rows, the last ones, are left out for the score.
MOST_SCORED = 20_000
# A target of whole numbers with at most this many different values has classes, unless `--task` says otherwise.
MOST_CLASSES = 20
# The parameters of `mercer fit` that are read here.
READ = {"target", "out", "force", "model", "task", "ignore", "test_size", "time_limit", "seed"}
READ |= {"landmarks", "workers", "cluster", "as_json", "debug"}


class Workers(NamedTuple):
    """Who sums over the rows: processes of this machine, a Dask cluster, or this process if both fields are None.

    Attributes
    ----------
    n_workers : int or None
        Number of processes on this machine.
    address : str or None
        Address of the scheduler of a Dask cluster.
    """

    n_workers: int | None = None
    address: str | None = None

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Yield a Dask client, or None for this process; the client is closed at the end of the block."""
        if self.n_workers is not None and self.address is not None:
            raise invalid_parameter("workers", self.n_workers, "left out where --cluster is given")
        if self.n_workers is None and self.address is None:
            yield None
            return
        from distributed import Client, LocalCluster

        if self.address is not None:
            with Client(self.address) as client:
                yield client
            return
        options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
        with LocalCluster(n_workers=self.n_workers, host="127.0.0.1", **options) as cluster, Client(cluster) as client:
            yield client


def check_options(context: typer.Context) -> None:
    """Raise an error if the user gave an option of `mercer fit` that is not read here."""
    where = "where --landmarks, --workers or --cluster is given"
    refuse_unread(context, READ, where)
    # The search of a discriminant is short, and its time is not limited.
    if context.params["model"] == "discriminant":
        refuse_unread(context, READ - {"time_limit"}, f"{where} with --model discriminant")


def run(
    data: list[Path],
    target: str,
    out: Path,
    model: str,
    task: str,
    ignore: tuple[str, ...],
    test_size: float,
    time_limit: float | None,
    seed: int,
    as_json: bool,
    n_landmarks: int = LANDMARKS,
    workers: Workers = Workers(),  # noqa: B008
) -> None:
    """Open the files, fit without the last rows, score on these, save the model, and print what was found."""
    check_model_output(out, read=data)
    with notes(), workers.client() as client:
        rows = open_rows(data, client=client)
        check_columns(rows.names, [target, *ignore], "column")
        X, y = rows.without(target, *ignore), rows.column(target)
        scored = min(int(test_size * len(rows)), MOST_SCORED)
        learned, left_out = slice(0, len(rows) - scored), slice(len(rows) - scored, len(rows))
        estimator = estimator_for(y, model, task, n_landmarks, time_limit, seed)
        with waiting(f"fitting {len(rows) - scored} rows"):
            estimator.fit(X.between(learned), y.between(learned))
        score = float(estimator.score(X.between(left_out), y[left_out])) if scored else None
    save(estimator, out)
    measure = "accuracy" if hasattr(estimator, "classes_") else "R^2"
    if as_json:
        found = {"data": for_programs(data), "rows": len(rows), "target": target, "model": type(estimator).__name__}
        print_json(found | {"n_train": learned.stop, "n_test": scored, "scores": {measure: score}, "out": out})
        return
    console = out_console()
    console.print(f"Learned {target} from {learned.stop} rows of {named(data)}", soft_wrap=True)
    if score is not None:
        console.print(f"{measure} {number(score)} on the last {scored} rows, which were left out", soft_wrap=True)
    console.print(f"Model saved to {out}", soft_wrap=True)


def estimator_for(y: FileRows, model: str, task: str, n_landmarks: int, time_limit: float | None, seed: int) -> Any:
    """Return the estimator of a name, or the one for the kind of target where the name is "auto"."""
    from mercer.discriminant.kernel_discriminant import KernelDiscriminant
    from mercer.tabular_models.gp import GPRegressor
    from mercer.tabular_models.rfm import RFMClassifier, RFMRegressor

    options: dict[str, Any] = {"n_landmarks": n_landmarks, "random_state": seed}
    if model == "discriminant":
        if task == "regression":
            raise invalid_parameter("model", model, "'auto', 'rfm' or 'gp' for a regression")
        return KernelDiscriminant(**options)
    if has_classes(y, task):
        if model == "gp":
            raise invalid_parameter("model", model, "'rfm' or 'discriminant' for classes with --landmarks")
        return RFMClassifier(time_limit=time_limit, **options)
    return (GPRegressor if model == "gp" else RFMRegressor)(time_limit=time_limit, **options)


def has_classes(y: FileRows, task: str) -> bool:
    """Return whether a target holds classes: strings, booleans, or whole numbers with few different values."""
    if task != "auto":
        return task == "classification"
    if y.dtype.kind == "f":
        return False
    if y.dtype.kind != "i":
        return True
    return len(np.unique(np.concatenate(gather_over_rows(np.unique, (), y)))) <= MOST_CLASSES
