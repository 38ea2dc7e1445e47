"""What commands print: tables and answers on standard output, progress and notes on standard error."""

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from mercer.app.files.plain_values import plain
from mercer.app.report.words import significant
from mercer.exceptions import MercerWarning, escaped, shortened

# Output that does not go to a terminal has this width, so that names are not cut.
WIDTH_OF_PIPES = 160
BAR = 40
# Longer notes, and longer texts in a line or a cell, are cut to this many characters.
MOST_OF_NOTE, MOST_OF_TEXT = 2000, 2000


class PlainConsole(Console):
    """A console that escapes control characters, so that names of columns and other texts cannot steer the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:  # type: ignore[override]
        """Return a text as it is printed in a line or in a cell of a table."""
        return super().render_str(escaped(shortened(text, MOST_OF_TEXT)), **options)


def out_console() -> Console:
    """Return the console on standard output, for answers. It reads no markup, since names may contain brackets."""
    return _console(stderr=False)


def err_console() -> Console:
    """Return the console on standard error, for progress and notes."""
    return _console(stderr=True)


def progress(console: Console | None = None) -> Progress:
    """Return a progress bar on a console, by default standard error. It shows nothing if that is not a terminal."""
    console = err_console() if console is None else console
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on standard error what is being done and for how long, if it is a terminal."""
    console = err_console()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task(escaped(what), total=None)
        yield


@contextmanager
def phases() -> Iterator[Callable[[str, float | None], None]]:
    """Yield a function of (phase, expected seconds left) that shows both on standard error, if it is a terminal."""
    console = err_console()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(phase: str, left: float | None) -> None:
            about = "" if left is None else f", about {duration(left)} left"
            bar.update(task, description=escaped(phase + about))

        yield show


def duration(seconds: float) -> str:
    """Return a length of time as people say it: 8 s, 40 s, 3 min, 2 h."""
    if seconds < 90:
        return f"{max(seconds, 1.0):.0f} s" if seconds < 20 else f"{round(seconds, -1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.0f} h"


@contextmanager
def notes() -> Iterator[None]:
    """Show each warning of Mercer once, as a line "note: ..." on standard error.

    Warnings of other libraries are not shown: they are about code, not about the user's data.
    """
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = escaped(shortened(" ".join(str(message).split()), MOST_OF_NOTE))
        if issubclass(category, MercerWarning) and line not in shown:
            shown.add(line)
            print(f"note: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MercerWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def print_json(document: Any) -> None:
    """Print one JSON document on standard output. Numbers that are not finite become null."""
    print(json.dumps(plain(document), allow_nan=False, indent=2))


def new_table(*headings: str, title: str | None = None, **options: Any) -> Table:
    """Return an empty table whose first column holds names and whose others hold numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", **options)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    return table


def bar(share: float, console: Console) -> str:
    """Return a bar of characters whose length is a share, from 0 to 1, of the longest bar."""
    return ("#" if console.options.ascii_only else "█") * round(BAR * share)


def number(value: float | None) -> str:
    """Return a number with three significant digits, or a dash if it is None or not finite."""
    return "-" if value is None or not math.isfinite(value) else significant(value)


def indented(renderable: Any) -> Padding:
    """Return something to print indented by two characters, as under a heading."""
    return Padding(renderable, (0, 0, 0, 2), expand=False)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")  # a name with letters that the terminal lacks must not stop the command
    console = PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_PIPES
    return console
