"""`mercer explore`: a page on this machine to explore a saved model."""

import webbrowser
from pathlib import Path
from typing import Any

from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import notes, out_console, print_json, waiting
from mercer.app.cli.predict import read
from mercer.app.explore import Exploration, Server
from mercer.app.files.tables import check_output
from mercer.app.projects.unlabeled import read_data
from mercer.io import load


def run(
    model: Path,
    data: list[Path],
    other: Path | None,
    concepts: Path | None,
    port: int,
    browser: bool,
    seed: int,
    as_json: bool,
    tables: TableOptions = PLAIN,
) -> None:
    """Load the models, read the data as the first model needs them, and serve the page until Ctrl-C."""
    server = prepare(model, data, other, concepts, port, seed, tables)
    if as_json:
        print_json({"model": model, "with": other, "data": for_programs(data), "address": server.address})
    else:
        console = out_console()
        console.print(f"Exploring {model} on {named(data)} at", soft_wrap=True)
        console.print(server.address, soft_wrap=True)
        console.print("Press Ctrl-C to stop.")
    server.start()
    if browser:
        webbrowser.open(server.address)
    try:
        server.ended.wait()
    except KeyboardInterrupt:
        server.stop()


def prepare(
    model: Path,
    data: list[Path],
    other: Path | None,
    concepts: Path | None,
    port: int,
    seed: int,
    tables: TableOptions = PLAIN,
) -> Server:
    """Return the server of the page; it is not started yet."""
    if concepts is not None:
        check_output(concepts, read=[path for path in (model, other, *data) if path is not None])
    models = [load(path) for path in (model, other) if path is not None]
    with notes():
        given = given_to(models[0], data, tables)
        with waiting("drawing the map"):
            exploration = Exploration(
                models[0],
                given,
                other=models[1] if len(models) > 1 else None,
                names=_names(model, other),
                title=", ".join(path.name or path.resolve().name for path in data),
                safe_csv=tables.safe_csv,
                concept_file=concepts,
                random_state=seed,
            )
    return Server(exploration, port)


def given_to(model: Any, data: list[Path], tables: TableOptions) -> Any:
    """Return the data as a workflow needs them, or unchanged for an estimator that was saved by itself."""
    return read(model, data, tables) if hasattr(model, "reads") else read_data(data, tables.reading())


def _names(model: Path, other: Path | None) -> tuple[str, str]:
    if other is None or other.name != model.name:
        return model.name, "" if other is None else other.name
    return str(model), str(other)
