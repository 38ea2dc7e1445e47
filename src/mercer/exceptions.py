"""Warnings and errors that name what was received and what is allowed."""

import sys
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class MercerWarning(UserWarning):
    """Base of every warning that Mercer gives, so that all can be silenced or made errors at once."""


class NumericalWarning(MercerWarning):
    """A computation went through, but not as asked: jitter was added, a fall-back was taken."""


class ConvergenceWarning(NumericalWarning):
    """An iterative solver stopped before it reached its tolerance."""


class DataWarning(MercerWarning):
    """The data allow less than was asked for: duplicate rows, fewer landmarks, a constant column."""


# Files of these packages stand between a user's line and ours: a pipeline calls us, a decorator of theirs wraps us.
BETWEEN = ("joblib", "mercer", "sklearn", "torch")


def warn_user(message: str, category: type[MercerWarning]) -> None:
    """Warn with the line of the user's code that called, whatever functions and decorators are between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class InvalidParameterError(ValueError):
    """A parameter has a value that is not allowed."""


class TooLargeError(ValueError):
    """A finite number in the data is so large that its square is not one."""


class NumericalError(ArithmeticError):
    """A computation cannot go on: a matrix that must be positive definite is not, or a first step is not finite."""


class ModelFileError(ValueError):
    """A model file is damaged, foreign, or of a version that cannot be read."""


class DataFileError(ValueError):
    """A file or folder of data is not what was expected: its kind, its columns, or what is in it."""


class ClusterError(RuntimeError):
    """Workers of a cluster cannot finish what they were asked for."""


# Characters of a foreign text that a message shows.
MOST_SHOWN = 300


def escaped(text: str) -> str:
    """Return a text in which nothing commands a terminal: control characters and turns of direction are spelled out.

    Names of columns, labels and fields of files are others' words: an escape sequence in one could rewrite the screen.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_plain(c) else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _is_plain(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text with its middle left out where it is longer than `most`."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}... ({len(text) - 2 * half} more characters) ...{text[-half:]}"


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """Return a value of others as a message shows it: its `repr`, escaped and shortened."""
    try:
        text = repr(value)
    except Exception:  # a number of too many digits, or an object that is not what it claims
        text = f"a {type(value).__name__}"
    return escaped(shortened(text, most))


def invalid_parameter(name: str, value: Any, allowed: str | Iterable[str], hint: str = "") -> InvalidParameterError:
    """Build the error for a parameter with a wrong value; a function, so that the error pickles."""
    if not isinstance(allowed, str):
        allowed = "one of " + ", ".join(repr(choice) for choice in allowed)
    return InvalidParameterError(f"{name}={shown(value)} is not allowed: {name} must be {allowed}. {hint}".rstrip())


class _Filters:
    """How many blocks of `ignored` are entered at the moment, and the filters before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before: list[Any] = []


_FILTERS = _Filters()


@contextmanager
def ignored(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a kind inside the block; only those that begin with `message`, a regular expression.

    Filters belong to the whole process. Where two threads overlap, `warnings.catch_warnings` lets the second to enter
    keep the filters of the first, and put them back for good when it leaves. Here the first to enter keeps the filters
    and the last to leave puts them back.
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
                # In place, by the module's own functions: copies of the list and of its version stay right.
                warnings.filters[:] = _FILTERS.before  # type: ignore[index]
                warnings._filters_mutated()  # type: ignore[attr-defined]
