"""Data frames of any library: their columns by name, and messages about columns that do not match."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any


def optional(module: str, what: str, extra: str = "tables") -> Any:
    """Import pandas, skrub or another optional package, or say which extra installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(f'{what} needs {module}: pip install "mercer[{extra}]"') from error


def as_frame(X: Any) -> Any:
    """Return X as a pandas data frame, or None if it is not a data frame of any library.

    Polars, Arrow and others are converted with `to_pandas`.
    """
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    return X if hasattr(X, "columns") and hasattr(X, "iloc") else None


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns as strings; an error says which names occur more than once."""
    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise ValueError(f"X has more than one column of the name {listed(repeated)}: give each a name of its own.")
    return names


def positions(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the position of each wanted column among `names`; an error lists those that are missing.

    The order of the columns does not matter, and additional columns are ignored: at prediction, a table often has an
    identifier or the target as well.
    """
    place = {name: i for i, name in enumerate(names)}
    missing = [name for name in wanted if name not in place]
    if missing:
        unused = [name for name in names if name not in set(wanted)]
        raise ValueError(
            "The feature names should match those that were passed during fit. X lacks "
            + ", ".join(repr(name) + nearest(name, unused) for name in missing[:10])
            + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            + f"; it has {listed(names)}."
        )
    return [place[name] for name in wanted]


def nearest(name: str, unused: Sequence[str]) -> str:
    """Return " (nearest: ...)" with the most similar names, or an empty string if none is similar."""
    folded = {other.casefold(): other for other in unused}
    close = get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    return f" (nearest: {', '.join(repr(folded[other]) for other in close)})" if close else ""


def listed(names: Sequence[str], at_most: int = 10) -> str:
    """Return names for a message; of many names, only the first few."""
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown + (f" and {len(names) - at_most} more" if len(names) > at_most else "")
