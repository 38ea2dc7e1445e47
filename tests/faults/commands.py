"""Every command that writes, on the smallest data that it takes, run in this process."""

import contextlib
import io
import os
import warnings
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import mercer
from mercer.app.cli import demo
from mercer.app.cli.app import app
from tests.faults.models import FRAME, TABLE

__all__ = ["COMMANDS", "WITHOUT_FILES", "prepared", "run"]


class Command(NamedTuple):
    """What is typed after `mercer`, the file that is looked at, and the others that are written beside it.

    Parts with a dot that do not begin with a digit are files or folders.
    """

    arguments: list[str]
    target: str
    others: tuple[str, ...] = ()


COMMANDS = {
    "fit": Command(
        ["fit", "table.csv", "--target", "y", "--model", "rfm", "--time-limit", "0.5", "--out", "new.mercer"],
        "new.mercer",
    ),
    "predict": Command(["predict", "model.mercer", "table.csv", "--out", "out.csv"], "out.csv"),
    "predict-gz": Command(["predict", "model.mercer", "table.csv", "--out", "out.csv.gz"], "out.csv.gz"),
    "embed": Command(["embed", "inputs.csv", "--n-components", "2", "--out", "out.parquet"], "out.parquet"),
    "embed-save": Command(
        ["embed", "inputs.csv", "--n-components", "2", "--out", "e.csv", "--save", "e.mercer"], "e.mercer", ("e.csv",)
    ),
    "cluster": Command(["cluster", "inputs.csv", "--n-clusters", "2", "--out", "out.xlsx"], "out.xlsx"),
    "cluster-save": Command(
        ["cluster", "inputs.csv", "--n-clusters", "2", "--out", "c.feather", "--save", "c.mercer"],
        "c.mercer",
        ("c.feather",),
    ),
    "report": Command(["report", "model.mercer", "table.csv", "--out", "page.html"], "page.html"),
    "demo": Command(["demo", "--out", "./tour"], "tour/embedding-digits.png", ("affinity-digits.png",)),
    "data get": Command(
        ["data", "get", "yaleb", "--out", "./sets"], "sets/yaleb_48x42.npz", ("yaleb_48x42.npz.sha256",)
    ),
    "reproduce": Command(
        [
            "reproduce",
            "kernel_discriminant",
            "--quick",
            "--only",
            "digits: KNN",
            "--seeds",
            "1",
            "--results",
            "./results",
            "--fresh",
        ],
        "results/kernel_discriminant-quick.md",
        ("kernel_discriminant-quick.jsonl", "kernel_discriminant-quick.json"),
    ),
}
WITHOUT_FILES = ("compare", "data list", "explore", "inspect", "leaderboard")
# The quickest parts of the tour.
STAGES = [stage for stage in demo.STAGES if stage[2].__name__ in ("embedding", "subspaces")]


def prepared(folder: Path) -> None:
    """Put the data and a model into a folder, and an old file where each command will write."""
    from mercer.app.projects import TablePrediction

    TABLE[["n", "c", "y"]].to_csv(folder / "table.csv", index=False)
    FRAME[["n", "c"]].to_csv(folder / "inputs.csv", index=False)
    (folder / "home").mkdir()
    np.savez(folder / "home" / "yaleb_48x42.npz", X=np.zeros((3, 48, 42), np.uint8), y=np.array([0, 1, 1], np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mercer.save(
            TablePrediction("rfm", time_limit=0.5, random_state=0).fit(TABLE[["n", "c", "y"]], "y"),
            folder / "model.mercer",
        )
    for command in COMMANDS.values():
        (folder / command.target).parent.mkdir(exist_ok=True)
        (folder / command.target).write_bytes(b"old")


def run(name: str, folder: Path) -> tuple[int, str]:
    """Run a command in a folder; return its exit code and what it said of an error."""
    arguments = [
        str(folder / part) if "." in part and not part[0].isdigit() else part for part in COMMANDS[name].arguments
    ]
    err = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        patch.dict(os.environ, MERCER_DATA=str(folder / "home")),
        patch.object(demo, "STAGES", STAGES),
    ):
        warnings.simplefilter("ignore")
        try:
            app(arguments, standalone_mode=True)
        except SystemExit as end:
            return int(end.code or 0), err.getvalue()
    return 0, err.getvalue()
