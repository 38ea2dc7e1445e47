"""Functions shared by the `figures` modules of the papers, which write the figures of experiments into a folder."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.claims import Results
from experiments.kept import kept_report, records_of
from experiments.runner import latest, load, mode, read_records
from mercer.app.cli.figures import write_figure

RESULTS = Path("experiments/results")


def recorded(name: str, results: Path = RESULTS) -> Results:
    """Return the results of the full runs of an experiment, from the journal here and the kept report.

    The journal may be that of a run that has not ended yet.
    """
    cases = load(name).cases(False)
    path = results / f"{name}-{mode(quick=False)}.jsonl"
    records, kept = read_records(io.BytesIO(path.read_bytes() if path.exists() else b"")), kept_report(name)
    known = [] if kept is None else records_of(kept)
    return Results({case.name: case.seeds for case in cases}, latest([*known, *records], cases))


def write_figures(figures: Mapping[str, Callable[[], Any]], arguments: Sequence[str]) -> None:
    """Draw all figures, or those whose names contain the second argument, into the folder of the first argument."""
    folder = Path(arguments[0]) if arguments else RESULTS / "figures"
    only = arguments[1] if len(arguments) > 1 else ""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in figures.items():
        if only in name:
            path = folder / f"{name}.png"
            write_figure(draw(), path, dpi=150)
            print(path)
