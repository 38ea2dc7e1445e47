"""Where the bytes of a table come from: a file, which may be compressed, or standard input."""

import bz2
import gzip
import lzma
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from mercer.app.files.formats import (
    PACKED_FIRST_BYTES,
    Format,
    check_engine,
    endings,
    format_of_bytes,
    packing_of,
    readable_format_of,
)
from mercer.exceptions import DataFileError, shown
from mercer.storage.atomic import check_path
from mercer.storage.reading import open_regular
from mercer.tables.frames import nearest

STANDARD_INPUT, NAME_OF_INPUT = "-", "standard input"
OPENERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Source:
    """A table as bytes.

    Attributes
    ----------
    name : str
        For messages: the path, or "standard input".
    kind : Format
    packing : str or None
        The ending of a compressed file, such as ".gz".
    path : Path or None
        None for standard input.
    content : bytes
        The bytes of standard input.
    """

    name: str
    kind: Format
    packing: str | None = None
    path: Path | None = None
    content: bytes = b""

    @property
    def size(self) -> int:
        """The number of bytes as they are stored."""
        return len(self.content) if self.path is None else self.path.stat().st_size

    def open_stored(self) -> BinaryIO:
        """Return the stored bytes as an open file; raise for a pipe or a device."""
        if self.path is None:
            return BytesIO(self.content)
        return open_regular(
            self.path, lambda phrase: DataFileError(f"{shown(self.name)} {phrase}: give a table in a file.")
        )

    def open(self) -> BinaryIO:
        """Return the uncompressed bytes as an open file."""
        stored = self.open_stored()
        if self.packing == ".zip":
            return _only_member(stored, self.name)
        return stored if self.packing is None else OPENERS[self.packing](stored)

    def head(self, n_bytes: int) -> bytes:
        """Return the first uncompressed bytes."""
        with self.open() as file:
            return file.read(n_bytes)


def source_of(path: str | os.PathLike[str], max_bytes: int) -> Source:
    """Return the source of a table; if there is no such file, the error names those with the most similar names.

    Parameters
    ----------
    path : str or path
        "-" is standard input.
    max_bytes : int
        It is an error if standard input has more bytes than this.
    """
    path = check_path(path)
    if str(path) == STANDARD_INPUT:
        return _standard_input(max_bytes)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}{nearest(path.name, _names_beside(path))}.")
    if path.is_dir():
        raise IsADirectoryError(
            f"{str(path)!r} is a folder, where a table was expected: {endings()}. Folders of images go to "
            "`mercer embed` and `mercer cluster`. To predict from images, add a column of labels to the table that "
            "`mercer embed` writes. To predict from texts, put each into a row of a table."
        )
    kind = readable_format_of(path)
    check_engine(kind)
    return Source(str(path), kind, packing_of(path), path)


def _standard_input(max_bytes: int) -> Source:
    content = sys.stdin.buffer.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataFileError(
            f"standard input holds more than {max_bytes / 2**20:.0f} MiB: raise the limit with --max-mb, or write the "
            "table to a file."
        )
    packing = next((ending for begin, ending in PACKED_FIRST_BYTES.items() if content.startswith(begin)), None)
    plain = Source(NAME_OF_INPUT, format_of_bytes(b""), packing, content=content)
    try:
        kind = format_of_bytes(plain.head(16))
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataFileError(f"standard input is compressed ({packing}) and damaged.") from error
    check_engine(kind)
    return Source(NAME_OF_INPUT, kind, packing, content=content)


def _only_member(stored: BinaryIO, name: str) -> Any:
    parts = zipfile.ZipFile(stored)
    members = [info for info in parts.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX")]
    if len(members) != 1:
        raise DataFileError(f"{shown(name)} holds {len(members)} files, but one table was expected: unpack it first.")
    return parts.open(members[0])


def _names_beside(path: Path) -> list[str]:
    return sorted(other.name for other in path.parent.iterdir()) if path.parent.is_dir() else []
