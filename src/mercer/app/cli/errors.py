"""Errors as one line and an exit code; --debug shows the traceback.

Exit codes: 0, done; 1, it could not be done, and the line says why; 2, the command was called wrongly; 70, a defect in
Mercer itself; 130, stopped by Ctrl-C.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mercer.exceptions import escaped, shortened

FAILED, MISUSED, DEFECT, STOPPED = 1, 2, 70, 130
# Longer messages are cut to this many characters.
MOST_OF_MESSAGE = 2000
# Errors that data, files, options or the machine can cause. Any other exception is a defect.
EXPECTED = (ValueError, OSError, ImportError, ArithmeticError, MemoryError)


@contextmanager
def for_people(*, debug: bool = False, as_json: bool = False) -> Iterator[None]:
    """Turn errors into a line on standard error and an exit code; with `as_json` also into JSON on standard output."""
    try:
        yield
    except Exception as error:
        # A closed pipe, as `head` leaves it, is not our error: typer ends quietly.
        if debug or isinstance(error, (typer.Exit, BrokenPipeError)):
            raise
        expected = isinstance(error, EXPECTED)
        message = escaped(shortened(" ".join(str(error).split()), MOST_OF_MESSAGE)) or type(error).__name__
        if not expected:
            message = f"a defect in Mercer itself, {type(error).__name__}: {message} (--debug shows where)"
        print(f"error: {message}", file=sys.stderr)
        if as_json:
            print(json.dumps({"error": message}))
        raise typer.Exit(FAILED if expected else DEFECT) from error
