"""Check how much memory a table will take before it is read, since a small file can require all the memory there is."""

import zipfile

from mercer.app.files.arrow_sizes import feather_size
from mercer.app.files.sources import Source
from mercer.app.files.text_sizes import growing_cell_count, growing_text_size, refuse_nested
from mercer.checks import check_number
from mercer.exceptions import DataFileError, shown
from mercer.tables.frames import optional

MIB = 2**20
# The default limit in MiB for a table, as text and as numbers of eight bytes.
MOST_MIB = 1024.0
# A compressed file may unpack to this many times its size, or to this many MiB if that is more. Compression usually
# reduces text by a factor of three to ten.
TIMES_PACKED, PACKED_MIB = 20, 64.0
# The most names in the first line, and its most bytes. Without a limit, one line of 50 MB takes minutes.
MOST_COLUMNS, LONGEST_FIRST_LINE = 20_000, 4 * MIB
PIECE = MIB
SEPARATORS = (b",", b";", b"\t", b"|")


def check_size(source: Source, max_mb: float | None = None, encoding: str | None = None) -> int:
    """Return the number of lines of a text, or 0 for other formats; raise if a table is too large or is no table.

    Devices, pipes, and texts with NUL characters are not tables.

    Parameters
    ----------
    source : Source
    max_mb : float or None
        MiB that the table may take. None is 1024, but for compressed files at most twenty times their size, or 64.
    encoding : str or None
        The encoding of a text, if it is known. In encodings of two or four bytes a character, zeros are allowed.
    """
    limit = None if max_mb is None else check_number("max_mb", max_mb, above=0.0)
    with source.open_stored():
        pass
    reader = source.kind.reader
    if reader in ("text", "json"):
        return _check_text(source, limit, wide=(encoding or "").startswith(("utf-16", "utf-32")))
    if reader == "excel":
        _check_excel(source, limit)
    elif reader == "parquet":
        _check_parquet(source, limit)
    elif reader == "feather":
        _check_feather(source, limit)
    return 0


def most_bytes(max_mb: float | None) -> int:
    """Return how many bytes may be read from a source whose size is not known, such as standard input."""
    return int((MOST_MIB if max_mb is None else check_number("max_mb", max_mb, above=0.0)) * MIB)


def _check_text(source: Source, limit: float | None, wide: bool) -> int:
    most = _packed_limit(source, limit) if source.packing is not None else limit or MOST_MIB
    is_table = source.kind.reader == "text"
    size, n_lines, first_line, n_columns = 0, 1, 0, None
    with source.open() as text:
        while piece := text.read(PIECE):
            size += len(piece)
            if size > most * MIB:
                raise _too_large(source, f"more than {most:.0f} MiB of text", most)
            if wide:
                piece = piece.replace(b"\0", b"")
            if b"\0" in piece:
                raise DataFileError(
                    f"{shown(source.name)} has NUL characters, near byte {size - len(piece) + piece.index(0)}: it is "
                    "damaged, or it has another encoding, such as UTF-16 (give it with --encoding)."
                )
            n_lines += max(piece.count(b"\n"), piece.count(b"\r"))
            if n_columns is None and is_table:
                end = min((i for i in (piece.find(b"\n"), piece.find(b"\r")) if i >= 0), default=-1)
                line = piece if end < 0 else piece[:end]
                first_line += max(line.count(separator) for separator in SEPARATORS)
                if first_line >= MOST_COLUMNS or (end < 0 and size > LONGEST_FIRST_LINE):
                    raise DataFileError(
                        f"{shown(source.name)} has a first line of {first_line + 1} or more names, of {size} bytes: at "
                        f"most {MOST_COLUMNS} names and {LONGEST_FIRST_LINE // MIB} MiB can be read."
                    )
                n_columns = None if end < 0 else first_line + 1
            check_cells(source, n_lines, n_columns or 1, limit)
    return n_lines


def check_cells(source: Source, n_lines: int, n_columns: int, limit: float | None) -> None:
    """Raise if a text with this many lines and columns takes too much memory. Short lines count as full ones."""
    if 8 * n_lines * n_columns > max(limit or 0.0, MOST_MIB) * MIB:
        raise _too_large(source, f"{n_columns} columns and {n_lines} or more lines", 8 * n_lines * n_columns / MIB)


def _check_excel(source: Source, limit: float | None) -> None:
    most = _packed_limit(source, limit)
    with source.open_stored() as file, zipfile.ZipFile(file) as parts:
        # Sizes that the file states. The reader stops at these, so that a false one does no harm.
        size = sum(part.file_size for part in parts.infolist())
    if size > most * MIB:
        raise _too_large(source, f"{size / MIB:.0f} MiB", most)
    with source.open_stored() as file:
        for cells in growing_cell_count(file):
            if 8 * cells > max(limit or 0.0, MOST_MIB) * MIB:
                raise _too_large(source, f"{cells} or more cells, empty ones among them", 8 * cells / MIB)


def _check_parquet(source: Source, limit: float | None) -> None:
    most = limit or MOST_MIB
    with source.open_stored() as file:
        about = optional("pyarrow.parquet", "reading Parquet files", "files").ParquetFile(file).metadata
    cells = about.num_rows * about.num_columns
    packed = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if max(8 * cells, packed) > most * MIB:
        raise _too_large(source, f"{about.num_rows} rows and {about.num_columns} columns", max(8 * cells, packed) / MIB)
    with source.open_stored() as file:
        for size in growing_text_size(file):
            if size > most * MIB:
                raise _too_large(source, f"more than {most:.0f} MiB of text", size / MIB)


def _check_feather(source: Source, limit: float | None) -> None:
    most = limit or MOST_MIB
    with source.open_stored() as file:
        rows, columns, n_bytes = feather_size(file)
        schema = optional("pyarrow.ipc", "reading Feather files", "files").open_file(file).schema
    if max(8 * rows * columns, n_bytes) > most * MIB:
        raise _too_large(source, f"{rows} rows and {columns} columns", max(8 * rows * columns, n_bytes) / MIB)
    refuse_nested(schema)


def _packed_limit(source: Source, limit: float | None) -> float:
    return limit or min(MOST_MIB, max(PACKED_MIB, TIMES_PACKED * source.size / MIB))


def _too_large(source: Source, what: str, most: float) -> DataFileError:
    return DataFileError(
        f"{shown(source.name)} holds {what}, which is more than the limit for a table. If the table is right, raise "
        f"the limit: --max-mb {2 * max(most, MOST_MIB):.0f} (max_mb in Python)."
    )
