"""Find out how much memory a table in a Feather file will take, without unpacking it.

Since its second version, a Feather file is an Arrow file. It ends in a list of the positions of its batches. Each batch
has a description in Google's flatbuffers: how many rows it has, and where the buffers of its columns are. A compressed
buffer begins with its uncompressed size. The reader allocates these sizes, so that their sum is an upper bound that is
known before anything is read. The layout is that of Arrow's File.fbs and Message.fbs.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

MAGIC, FIRST_VERSION = b"ARROW1", b"FEA1"
# These four bytes stand before the length of a description; older files have the length alone.
CONTINUED = 0xFFFFFFFF
# Positions of fields in Arrow's flatbuffer tables, and the type of a message that holds a dictionary (OF_DICTIONARY).
FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES = 1, 2, 3
SCHEMA_FIELDS = 1
MESSAGE_HEADER_TYPE, MESSAGE_HEADER = 1, 2
OF_DICTIONARY, DICTIONARY_DATA = 2, 1
BATCH_LENGTH, BATCH_BUFFERS, BATCH_COMPRESSION = 0, 2, 3


class TableSize(NamedTuple):
    """Numbers of rows and columns of a table, and the uncompressed size of its buffers in bytes."""

    rows: int
    columns: int
    n_bytes: int


class Flat(NamedTuple):
    """A table of a flatbuffer. Its fields are found by their number, and each may be missing.

    Attributes
    ----------
    data : buffer
    place : int
        Where the table begins. The four bytes there say how far before this position the list of its fields is.
    """

    data: Any
    place: int

    @classmethod
    def root(cls, data: Any, start: int) -> "Flat":
        """Return the root table of a flatbuffer that begins at `start`."""
        return cls(data, start + _number("<I", data, start))

    def at(self, field: int) -> int | None:
        """Return the position of the value of a field; None if it is missing."""
        fields = self.place - _number("<i", self.data, self.place)
        if 4 + 2 * field >= _number("<H", self.data, fields):
            return None
        offset = _number("<H", self.data, fields + 4 + 2 * field)
        return self.place + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """Return a number, 0 if it is missing."""
        place = self.at(field)
        return 0 if place is None else _number(form, self.data, place)

    def table(self, field: int) -> "Flat":
        """Return the table that a field holds; raise if it is missing."""
        place = self.at(field)
        if place is None:
            raise ValueError("a part of its description is missing")
        return Flat(self.data, place + _number("<I", self.data, place))

    def vector(self, field: int) -> tuple[int, int]:
        """Return how many items a list has, and the position of the first."""
        place = self.at(field)
        if place is None:
            return 0, 0
        start = place + _number("<I", self.data, place)
        return _number("<I", self.data, start), start + 4

    def structures(self, field: int, form: str) -> Iterator[tuple[Any, ...]]:
        """Yield the items of a list of structures."""
        count, start = self.vector(field)
        for i in range(count):
            yield struct.unpack_from(form, self.data, start + i * struct.calcsize(form))


def feather_size(file: BinaryIO) -> TableSize:
    """Return the size of the table in a Feather file; raise a ValueError or struct.error if it is no such file."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(FIRST_VERSION)] == FIRST_VERSION:
            raise ValueError("it is of Feather's first version, which is not read any more: write it again")
        if data[-len(MAGIC) :] != MAGIC:
            raise ValueError("its end is missing")
        end = len(data) - len(MAGIC) - 4
        footer = Flat.root(data, end - _number("<I", data, end))
        columns = footer.table(FOOTER_SCHEMA).vector(SCHEMA_FIELDS)[0]
        rows, n_bytes = 0, 0
        for field in (FOOTER_DICTIONARIES, FOOTER_BATCHES):
            # A block has an offset of eight bytes, a length of four, four bytes of padding, and a length of eight.
            for offset, length, _ in footer.structures(field, "<qi4xq"):
                batch_rows, batch_bytes = _batch_size(data, offset, length)
                rows += batch_rows if field == FOOTER_BATCHES else 0
                n_bytes += batch_bytes
        return TableSize(rows, columns, n_bytes)


def _batch_size(data: Any, offset: int, length: int) -> tuple[int, int]:
    """Return the number of rows of a batch and the uncompressed bytes of its buffers.

    Its description begins at `offset` and has `length` bytes; the buffers come after it.
    """
    is_continued = _number("<I", data, offset) == CONTINUED
    message = Flat.root(data, offset + (8 if is_continued else 4))
    batch = message.table(MESSAGE_HEADER)
    if message.number(MESSAGE_HEADER_TYPE, "<B") == OF_DICTIONARY:
        batch = batch.table(DICTIONARY_DATA)
    is_packed, n_bytes = batch.at(BATCH_COMPRESSION) is not None, 0
    for start, size in batch.structures(BATCH_BUFFERS, "<qq"):
        unpacked = _number("<q", data, offset + length + start) if is_packed and size else -1
        # A size of -1 stands before a buffer that was left uncompressed.
        n_bytes += size if unpacked == -1 else unpacked
        if min(start, size, unpacked + 1) < 0:
            raise ValueError("a size in it is negative")
    return batch.number(BATCH_LENGTH, "<q"), n_bytes


def _number(form: str, data: Any, place: int) -> int:
    if place < 0:
        raise ValueError("a place in it is negative")
    return struct.unpack_from(form, data, place)[0]
