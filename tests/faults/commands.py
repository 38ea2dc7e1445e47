"""Every command that writes, on the smallest data that it takes, run in this process."""

import contextlib
import io
import warnings
from pathlib import Path

import mercer
from mercer.app.cli.app import app
from tests.faults.models import FRAME, TABLE

__all__ = ["COMMANDS", "prepared", "run"]

# Each with the file that it writes.
COMMANDS = {
    "fit": (
        ["fit", "table.csv", "--target", "y", "--model", "rfm", "--time-limit", "0.5", "--out", "new.mercer"],
        "new.mercer",
    ),
    "predict": (["predict", "model.mercer", "table.csv", "--out", "out.csv"], "out.csv"),
    "predict-gz": (["predict", "model.mercer", "table.csv", "--out", "out.csv.gz"], "out.csv.gz"),
    "embed": (["embed", "inputs.csv", "--n-components", "2", "--out", "out.parquet"], "out.parquet"),
    "embed-save": (["embed", "inputs.csv", "--n-components", "2", "--out", "e.csv", "--save", "e.mercer"], "e.mercer"),
    "cluster": (["cluster", "inputs.csv", "--n-clusters", "2", "--out", "out.xlsx"], "out.xlsx"),
    "report": (["report", "model.mercer", "table.csv", "--out", "page.html"], "page.html"),
}


def prepared(folder: Path) -> None:
    """Put the data and a model into a folder, and an old file where each command will write."""
    from mercer.app.projects import TablePrediction

    TABLE[["n", "c", "y"]].to_csv(folder / "table.csv", index=False)
    FRAME[["n", "c"]].to_csv(folder / "inputs.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mercer.save(
            TablePrediction("rfm", time_limit=0.5, random_state=0).fit(TABLE[["n", "c", "y"]], "y"),
            folder / "model.mercer",
        )
    for _, target in COMMANDS.values():
        (folder / target).write_bytes(b"old")


def run(name: str, folder: Path) -> tuple[int, str]:
    """Run a command in a folder; return its exit code and what it said of an error."""
    arguments = [str(folder / part) if "." in part and not part[0].isdigit() else part for part in COMMANDS[name][0]]
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            app(arguments, standalone_mode=True)
        except SystemExit as end:
            return int(end.code or 0), err.getvalue()
    return 0, err.getvalue()
