"""Warnings and errors, and the functions that word them: they name what was received and what is allowed."""

import sys
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class MercerWarning(UserWarning):
    """Base class of all warnings of Mercer, so that all of them can be silenced, or made errors, at once."""


class NumericalWarning(MercerWarning):
    """A computation succeeded, but not as it was asked for: jitter was added, or a slower method was used."""


class ConvergenceWarning(NumericalWarning):
    """An iterative solver stopped before it reached its tolerance."""


class DataWarning(MercerWarning):
    """The data allow less than was asked for: rows are equal, a column is constant, fewer landmarks are found."""


# Packages whose functions may lie between the user's line and ours: a pipeline that calls us, or a decorator.
BETWEEN = ("joblib", "mercer", "sklearn", "torch")


def warn_user(message: str, category: type[MercerWarning]) -> None:
    """Give a warning that shows the line of the user's code, not one of Mercer or of the packages in `BETWEEN`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class InvalidParameterError(ValueError):
    """A parameter has a value that is not allowed."""


class TooLargeError(ValueError):
    """A finite number in the data is so large that its square is not finite."""


class NumericalError(ArithmeticError):
    """A computation cannot continue: a matrix that must be positive definite is not, or a first step is not finite."""


class ModelFileError(ValueError):
    """A model file is damaged, was not written by Mercer, or has a version that cannot be read."""


class DataFileError(ValueError):
    """A file or folder of data has another kind, other columns or other content than expected."""


class ClusterError(RuntimeError):
    """The workers of a cluster cannot finish their tasks."""


# How many characters of a text that is not ours a message shows.
MOST_SHOWN = 300


def escaped(text: str) -> str:
    """Return a text in which control characters, and those that change the direction of writing, are spelled out.

    The names of columns, labels and fields of files may come from anyone. An escape sequence in one of them could
    rewrite the screen of a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_plain(c) else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _is_plain(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text, without its middle if it has more than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}... ({len(text) - 2 * half} more characters) ...{text[-half:]}"


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """Return a value as a message shows it: its `repr`, escaped and shortened."""
    try:
        text = repr(value)
    except Exception:  # a number with too many digits, or an object whose `repr` is broken
        text = f"a {type(value).__name__}"
    return escaped(shortened(text, most))


def invalid_parameter(name: str, value: Any, allowed: str | Iterable[str], hint: str = "") -> InvalidParameterError:
    """Return the error for a parameter with a wrong value. This is a function so that the error can be pickled.

    Parameters
    ----------
    name : str
    value : object
        What was received.
    allowed : str or iterable of str
        What is allowed: the end of "must be ...", or all the choices.
    hint : str, default=""
        A sentence that says what to do.
    """
    if not isinstance(allowed, str):
        allowed = "one of " + ", ".join(repr(choice) for choice in allowed)
    return InvalidParameterError(f"{name}={shown(value)} is not allowed: {name} must be {allowed}. {hint}".rstrip())


class _Filters:
    """How many blocks of `ignored` are running, and the filters from before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before: list[Any] = []


_FILTERS = _Filters()


@contextmanager
def ignored(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a category inside the block, if their text begins with `message`, a regular expression.

    Filters belong to the whole process. If blocks of `warnings.catch_warnings` overlap in two threads, the second one
    saves the filters that the first one has set, and makes them permanent when it ends. Here the first block to begin
    saves the filters, and the last one to end restores them.
    """
    with _FILTERS.lock:
        if _FILTERS.depth == 0:
            _FILTERS.before = list(warnings.filters)
        _FILTERS.depth += 1
        warnings.filterwarnings("ignore", message=message, category=category)
    try:
        yield
    finally:
        with _FILTERS.lock:
            _FILTERS.depth -= 1
            if _FILTERS.depth == 0:
                # In place, and announced: Python keeps other references to the list, and a version number of it.
                warnings.filters[:] = _FILTERS.before  # type: ignore[index]
                warnings._filters_mutated()  # type: ignore[attr-defined]
