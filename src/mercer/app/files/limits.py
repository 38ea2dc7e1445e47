"""How much a table may take, found before it is parsed: few bytes of a file can ask for all the memory there is."""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer.app.files.arrow_sizes import feather_size
from mercer.app.files.text_sizes import growing_cell_count, growing_text_size, refuse_nested
from mercer.checks import check_number
from mercer.exceptions import DataFileError, shown
from mercer.storage.reading import open_regular
from mercer.tables.frames import optional

MIB = 2**20
# MiB that a table may take, as text and as numbers of eight bytes, where no other limit is given.
MOST_MIB = 1024.0
# A packed file unpacks to so many times its size at the most, or to so many MiB: text is packed three to ten times.
TIMES_PACKED, PACKED_MIB = 20, 64.0
# Names in the first line, and its bytes. Without a bound, one line of 50 MB takes minutes.
MOST_COLUMNS, LONGEST_FIRST_LINE = 20_000, 4 * MIB
PIECE = MIB

UNPACKERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def check_size(path: Path, reader: str, max_mb: float | None = None) -> None:
    """Raise if a table is larger than it may be, or is no table: a device, a pipe, or text with NUL characters.

    Parameters
    ----------
    path : Path
    reader : str
        The method of pandas that is going to read it.
    max_mb : float or None
        MiB that the table may take. None is 1024, and for packed files twenty times their size, or 64.
    """
    limit = None if max_mb is None else check_number("max_mb", max_mb, above=0.0)
    with open_regular(path, lambda phrase: DataFileError(f"{shown(str(path))} {phrase}: give a table in a file.")):
        pass
    if reader == "read_csv":
        _check_text(path, limit)
    elif reader == "read_excel":
        _check_excel(path, limit)
    elif reader == "read_parquet":
        _check_parquet(path, limit)
    elif reader == "read_feather":
        _check_feather(path, limit)


def _check_text(path: Path, limit: float | None) -> None:
    unpack = UNPACKERS.get(path.suffix.lower())
    most = _packed_limit(path, limit) if unpack is not None else limit or MOST_MIB
    size, n_lines, first_line, n_columns = 0, 1, 0, None
    with open_regular(path, DataFileError) as file:
        text = file if unpack is None else unpack(file)
        while piece := text.read(PIECE):
            size += len(piece)
            if size > most * MIB:
                raise _too_large(path, f"more than {most:.0f} MiB of text", most)
            if b"\0" in piece:
                raise DataFileError(
                    f"{shown(str(path))} has NUL characters, near byte {size - len(piece) + piece.index(0)}: it is "
                    "damaged, or in another encoding, such as UTF-16. Save it as UTF-8."
                )
            n_lines += max(piece.count(b"\n"), piece.count(b"\r"))
            if n_columns is None:
                end = min((i for i in (piece.find(b"\n"), piece.find(b"\r")) if i >= 0), default=-1)
                line = piece if end < 0 else piece[:end]
                first_line += max(line.count(separator) for separator in (b",", b";", b"\t"))
                if first_line >= MOST_COLUMNS or (end < 0 and size > LONGEST_FIRST_LINE):
                    raise DataFileError(
                        f"{shown(str(path))} has a first line of {first_line + 1} or more names, of {size} bytes: at "
                        f"most {MOST_COLUMNS} names and {LONGEST_FIRST_LINE // MIB} MiB can be read."
                    )
                n_columns = None if end < 0 else first_line + 1
            if 8 * n_lines * (n_columns or 1) > max(limit or 0.0, MOST_MIB) * MIB:
                raise _too_large(
                    path, f"{n_columns} columns and {n_lines} or more lines", 8 * n_lines * (n_columns or 1) / MIB
                )


def _check_excel(path: Path, limit: float | None) -> None:
    most = _packed_limit(path, limit)
    with zipfile.ZipFile(path) as parts:
        # What the file says of itself: reading ends there.
        size = sum(part.file_size for part in parts.infolist())
    if size > most * MIB:
        raise _too_large(path, f"{size / MIB:.0f} MiB", most)
    with open_regular(path, DataFileError) as file:
        for cells in growing_cell_count(file):
            if 8 * cells > max(limit or 0.0, MOST_MIB) * MIB:
                raise _too_large(path, f"{cells} or more cells, empty ones among them", 8 * cells / MIB)


def _check_parquet(path: Path, limit: float | None) -> None:
    most = limit or MOST_MIB
    about = optional("pyarrow.parquet", "a file of the kind Parquet", "files").ParquetFile(path).metadata
    cells = about.num_rows * about.num_columns
    packed = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if max(8 * cells, packed) > most * MIB:
        raise _too_large(path, f"{about.num_rows} rows and {about.num_columns} columns", max(8 * cells, packed) / MIB)
    with open_regular(path, DataFileError) as file:
        for size in growing_text_size(file):
            if size > most * MIB:
                raise _too_large(path, f"more than {most:.0f} MiB of text", size / MIB)


def _check_feather(path: Path, limit: float | None) -> None:
    most = limit or MOST_MIB
    with open_regular(path, DataFileError) as file:
        rows, columns, n_bytes = feather_size(file)
        schema = optional("pyarrow.ipc", "a file of the kind Feather", "files").open_file(file).schema
    if max(8 * rows * columns, n_bytes) > most * MIB:
        raise _too_large(path, f"{rows} rows and {columns} columns", max(8 * rows * columns, n_bytes) / MIB)
    refuse_nested(schema)


def _packed_limit(path: Path, limit: float | None) -> float:
    return limit or min(MOST_MIB, max(PACKED_MIB, TIMES_PACKED * path.stat().st_size / MIB))


def _too_large(path: Path, what: str, most: float) -> DataFileError:
    return DataFileError(
        f"{shown(str(path))} holds {what}, more than a table may take by default. If that is right, raise the limit: "
        f"--max-mb {2 * max(most, MOST_MIB):.0f} (max_mb in Python)."
    )
