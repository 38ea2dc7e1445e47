"""Read a file as named columns of texts or values, before their kinds are found."""

import errno
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mercer.app.files.description import FileFacts
from mercer.app.files.dialects import NAMES as DELIMITERS
from mercer.app.files.dialects import WHITESPACE, Dialect, find_dialect, records_of
from mercer.app.files.encodings import NAMES as ENCODINGS
from mercer.app.files.encodings import check_encoding, marked_encoding, unmarked_encoding
from mercer.app.files.limits import MIB, MOST_COLUMNS, PIECE, check_cells, check_size
from mercer.app.files.named_tables import UNNAMED, RawTable, check_names, named_table, not_of_its_kind
from mercer.app.files.sources import Source
from mercer.exceptions import DataFileError, InvalidParameterError, escaped, shortened, shown
from mercer.tables.frames import listed, nearest, optional

if TYPE_CHECKING:
    from mercer.app.files.reading import ReadOptions

# Bytes of a text that are used to find its dialect, and rows of a sheet that are used to find its header.
HEAD, HEAD_ROWS = MIB // 2, 500
TOO_MANY_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_raw(source: Source, options: "ReadOptions", known: Sequence[str]) -> RawTable:
    """Return the columns of a file with their names.

    Parameters
    ----------
    source : Source
    options : ReadOptions
    known : sequence of str
        Names that the table must have.
    """
    pandas = optional("pandas", "reading tables", "files")
    facts = FileFacts(source.name, source.kind.name)
    try:
        encoding = _known_encoding(source, options)
        n_lines = check_size(source, options.max_mb, encoding)
        if source.kind.reader == "text":
            raw = _read_text(pandas, source, facts, options, known, encoding, n_lines)
        elif source.kind.reader == "excel":
            raw = _read_excel(pandas, source, facts, options, known)
        elif source.kind.reader == "json":
            raw = RawTable(_read_json(pandas, source, facts, encoding), facts)
        elif source.kind.reader == "feather":
            raw = RawTable(_read_feather(source), facts)
        else:
            with source.open() as file:
                raw = RawTable(getattr(pandas, f"read_{source.kind.reader}")(file).reset_index(drop=True), facts)
    except (DataFileError, InvalidParameterError):
        raise
    except Exception as error:  # readers can raise any exception
        # An OSError with a number comes from the system: no permission, no such disk. All others are about the content
        # of the file, and so is EINVAL, an impossible position in it.
        is_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
        if is_system or isinstance(error, MemoryError):
            raise
        reason = escaped(shortened((str(error).strip().splitlines() or [type(error).__name__])[0]))
        raise not_of_its_kind(facts, reason) from error
    return _checked(raw)


def _read_feather(source: Source) -> Any:
    """Return the table of a Feather file, after checking its buffers, which Arrow itself does not.

    In a damaged file, a text can begin outside of its buffer. Reading that text would read foreign memory.
    """
    feather = optional("pyarrow.feather", "a file of the kind Feather", "files")
    with source.open() as file:
        table = feather.read_table(file, memory_map=False)
        table.validate(full=True)
        return table.to_pandas().reset_index(drop=True)


# ---- texts ------------------------------------------------------------------------------------------------------


def _known_encoding(source: Source, options: "ReadOptions") -> str | None:
    if source.kind.reader not in ("text", "json"):
        return None
    return check_encoding(options.encoding) if options.encoding else marked_encoding(source.head(HEAD))


def _found_encoding(source: Source) -> str:
    with source.open() as file:
        return unmarked_encoding(iter(lambda: file.read(PIECE), b""))


def _read_text(
    pandas: Any,
    source: Source,
    facts: FileFacts,
    options: "ReadOptions",
    known: Sequence[str],
    encoding: str | None,
    n_lines: int,
) -> RawTable:
    notes = []
    if encoding is None:
        encoding = _found_encoding(source)
        if encoding not in ("utf-8", "utf-8-sig"):
            notes.append(
                f"{shown(source.name)} is not UTF-8 and is read as {ENCODINGS[encoding]}: if letters are wrong, give "
                "the encoding with --encoding."
            )
    head = source.head(HEAD)
    is_whole = len(head) < HEAD
    text = _decoded(head, encoding, is_whole)
    if not text.strip():
        raise not_of_its_kind(facts, "it is empty.")
    dialect = find_dialect(text, source.kind.options["sep"], is_whole)
    if dialect.width > MOST_COLUMNS:
        raise DataFileError(f"{shown(source.name)} has {dialect.width} columns: at most {MOST_COLUMNS} can be read.")
    check_cells(source, n_lines, dialect.width, options.max_mb)
    grid = _grid_of_text(pandas, source, facts, dialect, encoding)
    records = records_of(text, dialect, is_whole)
    facts = replace(
        facts, encoding=ENCODINGS.get(encoding, encoding), delimiter=DELIMITERS[dialect.delimiter], notes=notes
    )
    return named_table(grid, records, facts, options, known)


def _decoded(head: bytes, encoding: str, is_whole: bool) -> str:
    # The last character of a head may be incomplete.
    try:
        return head.decode(encoding, errors="strict" if is_whole else "ignore")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in the encoding {encoding}: {error.reason} at byte {error.start}") from error


def _grid_of_text(pandas: Any, source: Source, facts: FileFacts, dialect: Dialect, encoding: str) -> Any:
    """Return all records as rows of texts, without blank lines."""
    cut = pandas.errors.ParserWarning
    with source.open() as file, warnings.catch_warnings():
        warnings.simplefilter("error", cut)  # pandas would cut the ends of rows that are longer than expected
        try:
            return pandas.read_csv(
                file,
                sep=dialect.delimiter,
                header=None,
                names=range(dialect.width),
                index_col=False,
                dtype=str,
                na_filter=False,
                quotechar=dialect.quote,
                escapechar=dialect.escape,
                doublequote=dialect.escape is None,
                skipinitialspace=dialect.delimiter not in ("\t", WHITESPACE),
                encoding=encoding,
                low_memory=False,
            )
        except cut as error:
            reason = f"some rows have more fields than the {dialect.width} of others, or quotes inside of fields."
            raise not_of_its_kind(facts, reason) from error
        except pandas.errors.ParserError as error:
            found = TOO_MANY_FIELDS.search(str(error))
            if found is None:
                raise
            expected, line, saw = map(int, found.groups())
            raise not_of_its_kind(
                facts,
                f"line {line} has {saw} fields where others have {expected}: {_line(source, line, encoding)}",
            ) from error


def _line(source: Source, number: int, encoding: str) -> str:
    """Return a line of a text, shortened for a message."""
    with source.open() as file:
        text = file.read(64 * MIB).decode(encoding, errors="replace").splitlines()
    return shown(text[number - 1], 120) if number <= len(text) else "a line far below"


# ---- Excel and JSON ---------------------------------------------------------------------------------------------


def _read_excel(
    pandas: Any, source: Source, facts: FileFacts, options: "ReadOptions", known: Sequence[str]
) -> RawTable:
    with source.open_stored() as file, pandas.ExcelFile(file, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        chosen = _sheet(source, sheets, options.sheet)
        wanted = [chosen] if chosen is not None else sheets
        for name in wanted:
            grid = pandas.read_excel(book, sheet_name=name, header=None, dtype=object, na_filter=False)
            grid = grid.where(grid.notna() & (grid != ""), None)
            if grid.notna().any(axis=None):
                break
    grid.columns = range(grid.shape[1])
    filled = grid.notna().any(axis=0).to_numpy()
    if filled.any():  # drop empty columns to the left and to the right of the table
        first, last = filled.argmax(), len(filled) - filled[::-1].argmax()
        grid = grid.iloc[:, first:last]
        grid.columns = range(grid.shape[1])
    grid = grid[grid.notna().any(axis=1)].reset_index(drop=True)
    others = [other for other in sheets if other != name]
    notes = []
    if chosen is None and others:
        notes.append(
            f"{shown(source.name)}: the sheet {name!r} is read; choose another with --sheet: {listed(others)}."
        )
    facts = replace(facts, sheet=name, sheets=sheets, notes=notes)
    return named_table(grid, grid.head(HEAD_ROWS).to_numpy(dtype=object).tolist(), facts, options, known)


def _sheet(source: Source, sheets: list[str], asked: str | None) -> str | None:
    if asked is None or asked in sheets:
        return asked
    if asked.isdigit() and 1 <= int(asked) <= len(sheets):
        return sheets[int(asked) - 1]
    raise DataFileError(
        f"{shown(source.name)} has no sheet {asked!r}{nearest(asked, sheets)}; it has {listed(sheets)}."
    )


def _read_json(pandas: Any, source: Source, facts: FileFacts, encoding: str | None) -> Any:
    encoding = encoding or _found_encoding(source)
    with source.open() as file:
        text = file.read().decode(encoding)
    if text.lstrip().startswith("["):
        records = json.loads(text)
    else:
        records = []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise not_of_its_kind(facts, f"line {number}, {shown(line, 120)}: {error.msg}") from error
    wrong = next((record for record in records if not isinstance(record, dict)), None)
    if wrong is not None:
        raise not_of_its_kind(
            facts, f"each row must be an object with the names of the columns, but one is {shown(wrong, 80)}."
        )
    names = dict.fromkeys(name for record in records for name in record)
    return pandas.DataFrame({name: _column_of_json(pandas, [r.get(name) for r in records]) for name in names})


def _column_of_json(pandas: Any, values: list[Any]) -> Any:
    """Return a column with the type of its numbers or booleans; values of mixed types are not changed."""
    present = [value for value in values if value is not None]
    if present and all(type(value) is bool for value in present) and len(present) == len(values):
        return pandas.Series(values, dtype=bool)
    if present and all(type(value) in (int, float) for value in present):
        is_whole = len(present) == len(values) and all(type(v) is int and abs(v) < 2**53 for v in present)
        return pandas.Series(values, dtype="int64" if is_whole else "float64")
    return pandas.Series(values, dtype=object)


# ---- all of them ------------------------------------------------------------------------------------------------


def _checked(raw: RawTable) -> RawTable:
    frame, facts = raw
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataFileError(f"{facts.name!r} holds no data: it has {frame.shape[0]} rows and {frame.shape[1]} columns.")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_names(list(frame.columns), facts.name)
    if _counts_rows(frame):
        note = f"the first column of {facts.name!r} has no name and counts the rows, so it is left out."
        frame, facts = frame.iloc[:, 1:], replace(facts, notes=[*facts.notes, note])
    return RawTable(frame, replace(facts, n_rows=len(frame)))


def _counts_rows(frame: Any) -> bool:
    """Return whether the first column is the index that pandas writes, which is only the number of the row."""
    if frame.columns[0] != f"{UNNAMED}0" or frame.shape[1] == 1:
        return False
    return [str(value) for value in frame.iloc[:, 0]] == [str(i) for i in range(len(frame))]
