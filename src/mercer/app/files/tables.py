"""Read a table from a file of any format, and write one. A file is written whole or not at all."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercer.app.files.formats import COMPRESSED, FORMATS, Format, check_engine, format_of
from mercer.app.files.reading import Paths, ReadOptions, read_described, warn_of
from mercer.exceptions import DataFileError
from mercer.storage.atomic import check_path, check_target, write_atomically
from mercer.tables.frames import listed, nearest, optional

if TYPE_CHECKING:
    import pandas as pd


# A text that begins with one of these characters is a formula in a spreadsheet.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def read_table(path: Paths, *, max_mb: float | None = None, kinds: Mapping[str, str] | None = None) -> "pd.DataFrame":
    """Return the table in a file, or in several files of the same columns, as a data frame with typed columns.

    The format of the file is found out: delimiter, encoding, whether the first row has the names, a title above,
    decimal commas, units, and the kind of each column. A warning says what was guessed; `read_described` returns the
    whole description.

    Parameters
    ----------
    path : str, path or sequence of them
        CSV, TSV and other texts with columns, Parquet, Feather, Excel or JSON lines, by the ending of the name. Texts
        may be compressed.
    max_mb : float or None, default=None
        MiB that the table may take, as text and as numbers of eight bytes. None is 1024, but for a compressed file at
        most twenty times its size, or 64.
    kinds : dict of str or None, default=None
        The kinds of some columns. Those of all others are found out.

    Raises
    ------
    FileNotFoundError, DataFileError
        See `read_described`.
    """
    table = read_described(path, ReadOptions(kinds=kinds, max_mb=max_mb))
    warn_of(table.notes)
    return table.frame


def write_table(frame: "pd.DataFrame", path: str | os.PathLike[str], *, safe_csv: bool = False) -> None:
    """Write a table to a file, in the format that its ending says. The file is written whole or not at all.

    Parameters
    ----------
    frame : DataFrame
        Its index is not written.
    path : str or path
    safe_csv : bool, default=False
        For CSV and TSV: whether texts that a spreadsheet would take for a formula, such as `=1+1`, and such names of
        columns, get an apostrophe before them. It is still there when the file is read again.
    """
    kind = check_writable(path)
    target = check_target(path)
    buffer = BytesIO()
    # Feather and Parquet would store any other index than the default one.
    plain = frame.reset_index(drop=True)
    if safe_csv and kind.writer == "to_csv":
        plain = without_formulas(plain)
    write = getattr(plain, kind.writer)
    if kind.writer == "to_csv":
        # pandas finds the compression by the name of the file, but here it writes to a buffer.
        write = partial(write, index=False, compression=COMPRESSED.get(target.suffix.lower()), **kind.options)
    elif kind.writer == "to_json":
        write = partial(write, compression=COMPRESSED.get(target.suffix.lower()), **kind.options)
    elif kind.writer == "to_excel":
        write = partial(write, index=False)
    write(buffer)
    write_atomically(target, [buffer.getbuffer()])


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with an apostrophe before texts and names that a spreadsheet would take for a formula."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value

    columns = {
        safe(name): frame[name] if frame[name].dtype.kind in "biufmM" else frame[name].map(safe)
        for name in frame.columns
    }
    return optional("pandas", "a table").DataFrame(columns)


def check_writable(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> Format:
    """Return the format of a table that is to be written; raise if it cannot be, before anything is computed."""
    check_output(path, read=read)
    kind = format_of(check_path(path))
    check_engine(kind)
    return kind


def check_output(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> None:
    """Raise if no file can be written to a path, or if it would replace one of the files that are read."""
    target = check_target(path, "out")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"out={str(path)!r}: you may not write into the folder {str(target.parent)!r}.")
    if any(target == Path(os.path.realpath(other)) for other in read):
        raise DataFileError(f"out={str(path)!r} is a file that is read: give another name, or it would be overwritten.")


def check_model_output(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> None:
    """Raise if no model can be saved to a path, or if it has the ending of a table, which is probably a mistake."""
    check_output(path, read=read)
    ending = check_path(path).suffix.lower()
    if ending in FORMATS or ending in COMPRESSED:
        raise DataFileError(f"out={str(path)!r} has the ending of a table: a model needs another, such as '.mercer'.")


def check_columns(names: Iterable[Any], wanted: Sequence[Any], what: str = "column") -> None:
    """Raise if a wanted column is not in the table; the message names the column with the most similar name."""
    there = [str(name) for name in names]
    missing = [str(name) for name in wanted if str(name) not in there]
    if not missing:
        return
    named = f"{missing[0]!r}{nearest(missing[0], there)}"
    if len(missing) > 1:
        named += f", nor {listed(missing[1:])}"
    raise DataFileError(f"the table has no {what} {named}; it has {listed(there)}.")
