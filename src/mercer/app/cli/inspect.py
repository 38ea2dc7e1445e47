"""`mercer inspect`: show how a table is read, before anything is learned from it."""

from pathlib import Path

from rich.console import Console

from mercer.app.cli.options import PLAIN, TableOptions
from mercer.app.cli.output import indented, new_table, out_console, print_json
from mercer.app.files.description import Table, values_in_words
from mercer.app.files.reading import read_described


def run(data: list[Path], as_json: bool, tables: TableOptions = PLAIN) -> None:
    """Read a table, and print how it was read."""
    table = read_described(data, tables.reading())
    if as_json:
        print_json(table.describe())
    else:
        show(out_console(), table)


def show(console: Console, table: Table) -> None:
    """Print how the files were read, a line for each column, and what is odd."""
    for facts in table.files:
        console.print(f"{facts.name}: {facts.in_words()}", soft_wrap=True)
    console.print(f"{len(table)} rows and {len(table.columns)} columns\n")
    has_unreadable = bool(table.unreadable)
    headings = ("column", "kind", "missing", *(("unreadable",) if has_unreadable else ()), "values", "why")
    listing = new_table(*headings)
    for heading, shown in zip(headings, listing.columns, strict=True):
        shown.justify = "right" if heading in ("missing", "unreadable") else "left"
    for column in table.columns:
        counts = [column.n_missing, *([column.n_unreadable] if has_unreadable else [])]
        listing.add_row(
            column.name,
            column.reading.kind,
            *(str(count) if count else "" for count in counts),
            values_in_words(column),
            column.reason,
        )
    console.print(listing)
    if table.notes:
        console.print("\nWorth a look", style="bold")
        for note in table.notes:
            console.print(indented(note))
