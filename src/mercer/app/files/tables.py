"""Read a table from a file, whatever its format, and write one whole or not at all."""

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mercer.app.files.limits import check_size
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError, escaped, shortened, shown
from mercer.storage.atomic import check_path, check_target, write_atomically
from mercer.tables.frames import listed, nearest, optional

if TYPE_CHECKING:
    import pandas as pd


class Format(NamedTuple):
    """How a kind of file is called, read and written: methods of pandas, and of its data frames."""

    name: str
    reader: str
    writer: str
    options: dict[str, Any]
    needs: str | None = None


CSV = Format("CSV", "read_csv", "to_csv", {"sep": ","})
FORMATS: dict[str, Format] = {
    ".csv": CSV,
    ".tsv": Format("tab-separated", "read_csv", "to_csv", {"sep": "\t"}),
    ".parquet": Format("Parquet", "read_parquet", "to_parquet", {}, "pyarrow"),
    ".feather": Format("Feather", "read_feather", "to_feather", {}, "pyarrow"),
    ".xlsx": Format("Excel", "read_excel", "to_excel", {}, "openpyxl"),
}
# With these a spreadsheet's formula begins.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}


def read_table(path: str | os.PathLike[str], *, max_mb: float | None = None) -> "pd.DataFrame":
    """Return the table in a file: CSV (also compressed), tab-separated, Parquet, Feather or Excel, by its ending.

    A CSV may have semicolons in place of commas, and decimal commas with them. A first column without a name that only
    counts the rows, as pandas writes it, is left out with a warning. Of an Excel file the first sheet is read.

    Parameters
    ----------
    path : str or path
    max_mb : float or None, default=None
        MiB that the table may take, as text and as numbers of eight bytes. None is 1024; of a packed file twenty times
        its size, or 64.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the nearest names in its folder are given.
    DataFileError
        If the file is not what its ending says, or is a pipe or a device, or larger than the limit, or has NUL
        characters, or holds no rows, or two columns of one name, or more fields in its rows than names.
    """
    path = check_path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}{nearest(path.name, _names_beside(path))}.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder, where a table was expected: {_endings()}.")
    kind = format_of(path)
    read = getattr(optional("pandas", "reading tables", "files"), kind.reader)
    _check_engine(kind)
    try:
        check_size(path, kind.reader, max_mb)
        frame = _read_separated(read, path, **kind.options) if kind.reader == "read_csv" else read(path)
        if kind.reader == "read_excel":
            _check_names(read(path, header=None, nrows=1, dtype=object).iloc[0].tolist(), path)
    except (DataFileError, InvalidParameterError):
        raise
    except Exception as error:  # readers raise whatever their engines do
        # An OSError with a number is the system's: no permission, no such disk. Others are about the content.
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        reason = escaped(shortened((str(error).strip().splitlines() or [type(error).__name__])[0]))
        raise DataFileError(f"{str(path)!r} is not a file of the kind {kind.name}, as it is named: {reason}") from error
    return _checked(frame, path)


def write_table(frame: "pd.DataFrame", path: str | os.PathLike[str], *, safe_csv: bool = False) -> None:
    """Write a table into a file of the format that its ending says; it appears whole or not at all.

    Parameters
    ----------
    frame : DataFrame
        Its index is not written.
    path : str or path
    safe_csv : bool, default=False
        Whether texts that a spreadsheet would take for a formula, such as `=1+1`, get an apostrophe before them, in
        names of columns too. Of separated values only, and what is read again has the apostrophes.
    """
    kind = check_writable(path)
    target = check_target(path)
    buffer = BytesIO()
    # Feather and Parquet keep an index: the plain one is none.
    plain = frame.reset_index(drop=True)
    if safe_csv and kind.writer == "to_csv":
        plain = _without_formulas(plain)
    write = getattr(plain, kind.writer)
    if kind.writer == "to_csv":
        # Compressed here, as pandas does it by the name of a file and there is none.
        write = partial(write, index=False, compression=COMPRESSED.get(target.suffix.lower()), **kind.options)
    elif kind.writer == "to_excel":
        write = partial(write, index=False)
    write(buffer)
    write_atomically(target, [buffer.getbuffer()])


def _without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value

    columns = {
        safe(name): frame[name] if frame[name].dtype.kind in "biufmM" else frame[name].map(safe)
        for name in frame.columns
    }
    return optional("pandas", "a table").DataFrame(columns)


def check_writable(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> Format:
    """Return the format of a table that is to be written; an error if it cannot be, before anything is computed."""
    check_output(path, read=read)
    kind = format_of(check_path(path))
    _check_engine(kind)
    return kind


def check_output(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> None:
    """Raise if no file can be put there, or if it would take the place of one of those that are read."""
    target = check_target(path, "out")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"out={str(path)!r}: nothing may be written into the folder {str(target.parent)!r}.")
    if any(target == Path(os.path.realpath(other)) for other in read):
        raise DataFileError(f"out={str(path)!r} is a file that is read: give another name, or it would be lost.")


def check_model_output(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> None:
    """Raise if no model can be saved there; a name that ends as a table does is a slip."""
    check_output(path, read=read)
    ending = check_path(path).suffix.lower()
    if ending in FORMATS or ending in COMPRESSED:
        raise DataFileError(f"out={str(path)!r} ends as a table does: a model needs another ending, such as '.mercer'.")


def format_of(path: Path) -> Format:
    """Return the format that a file's ending says."""
    endings = [suffix.lower() for suffix in path.suffixes]
    if endings and endings[-1] in COMPRESSED and FORMATS.get("".join(endings[-2:-1]), CSV).reader == "read_csv":
        endings = endings[:-1]
    kind = FORMATS.get(endings[-1] if endings else "")
    if kind is None:
        raise DataFileError(f"{str(path)!r} has no ending that says what table it is: {_endings()}.")
    return kind


def check_columns(names: Iterable[Any], wanted: Sequence[Any], what: str = "column") -> None:
    """Raise if some wanted columns are not there, with the nearest of those that are."""
    there = [str(name) for name in names]
    for name in wanted:
        if str(name) not in there:
            raise DataFileError(
                f"the table has no {what} {str(name)!r}{nearest(str(name), there)}; it has {listed(there)}."
            )


def _names_beside(path: Path) -> list[str]:
    return sorted(other.name for other in path.parent.iterdir()) if path.parent.is_dir() else []


def _endings() -> str:
    return "a file that ends in " + ", ".join(FORMATS)


def _check_engine(kind: Format) -> None:
    if kind.needs is not None:
        optional(kind.needs, f"a file of the kind {kind.name}", "files")


def _read_separated(read: Any, path: Path, sep: str) -> "pd.DataFrame":
    """Return a table of separated values; where semicolons separate, commas may be decimal."""
    names = _first_line(read, path, sep)
    if sep != "," or len(names) != 1 or ";" not in str(names[0]):
        _check_names(names, path)
        return _read_aligned(read, path, sep=sep)
    _check_names(_first_line(read, path, ";"), path)
    frame = _read_aligned(read, path, sep=";")
    texts = (frame[name].dropna() for name in frame.columns if frame[name].dtype.kind == "O")
    if any(len(text) and text.astype(str).str.fullmatch(r"\s*[-+]?\d+,\d+\s*").all() for text in texts):
        frame = _read_aligned(read, path, sep=";", decimal=",")
    return frame


def _first_line(read: Any, path: Path, sep: str) -> list[Any]:
    """Return the names as they stand: pandas gives the second of two columns of one name another."""
    return read(path, sep=sep, nrows=1, header=None, dtype=object, index_col=False).iloc[0].tolist()


def _check_names(names: list[Any], path: Path) -> None:
    """Raise if two columns have one name. Those without any are known by their place."""
    seen: set[str] = set()
    for name in (str(name) for name in names if name == name and name is not None):
        if name in seen:
            raise DataFileError(f"{str(path)!r} has two columns {shown(name)}: columns need names of their own.")
        seen.add(name)


def _read_aligned(read: Any, path: Path, **options: Any) -> "pd.DataFrame":
    """Return a table whose rows have no more fields than there are names.

    pandas would take the first fields for names of the rows, and shift all columns; told not to, it cuts and warns.
    """
    cut = optional("pandas", "reading tables", "files").errors.ParserWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", cut)
        try:
            # Types are found over the whole column, not over pieces of it.
            return read(path, index_col=False, low_memory=False, **options)
        except cut as error:
            raise ValueError("its rows have more fields than its first line has names.") from error


def _checked(frame: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataFileError(f"{str(path)!r} holds no data: it has {frame.shape[0]} rows and {frame.shape[1]} columns.")
    frame.columns = [str(name) for name in frame.columns]
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise DataFileError(f"{str(path)!r} has two columns {shown(twice[0])}: columns need names of their own.")
    return _without_row_numbers(frame, path)


def _without_row_numbers(frame: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    """Leave out the index that pandas writes: it would tell of the order of the rows."""
    first = frame.columns[0]
    counts = frame[first].tolist() == list(range(len(frame))) if first == "Unnamed: 0" else False
    if not counts or frame.shape[1] == 1:
        return frame
    warnings.warn(
        f"the first column of {str(path)!r} has no name and counts the rows: it is left out.", DataWarning, stacklevel=4
    )
    return frame.drop(columns=first)
