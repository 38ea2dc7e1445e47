"""`mercer report`: write what a saved model has found as a page for any browser."""

from pathlib import Path

from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import notes, out_console, print_json, waiting
from mercer.app.cli.predict import read
from mercer.app.report import REPORTED, check_page, write_report
from mercer.exceptions import ModelFileError
from mercer.io import load


def run(model: Path, data: list[Path], out: Path, seed: int, as_json: bool, tables: TableOptions = PLAIN) -> None:
    """Load the model, read the data as the model needs them, and write the page."""
    check_page(out, read=[model, *data])
    workflow = load(model)
    if not isinstance(workflow, tuple(REPORTED)):
        raise ModelFileError(
            f"{str(model)!r} holds a {type(workflow).__name__}, for which there is no report: give a model that "
            "`mercer fit`, `embed` or `cluster` saved."
        )
    with notes():
        given = read(workflow, data, tables)
        with waiting("writing the report"):
            name = ", ".join(path.name or path.resolve().name for path in data)
            write_report(workflow, given, out, data_name=name, random_state=seed)
    size = out.stat().st_size
    if as_json:
        print_json(
            {"model": model, "data": for_programs(data), "kind": type(workflow).__name__, "bytes": size, "out": out}
        )
    else:
        out_console().print(
            f"Report of {model} on {named(data)}, {size / 1e6:.1f} MB, written to {out}", soft_wrap=True
        )
