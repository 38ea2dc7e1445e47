"""Find the encoding of a text from its first bytes, and from whether all of it is valid UTF-8."""

import codecs
from collections.abc import Iterable
from itertools import chain

from mercer.exceptions import invalid_parameter

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# In UTF-16, nearly every second byte of a table is zero. At least this share of them must be.
SHARE_OF_ZEROS = 0.4
# Bytes that are no character in Windows-1252.
WITHOUT_MEANING = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252 (Latin-1)",
    "latin-1": "Latin-1",
}


def check_encoding(encoding: str) -> str:
    """Return Python's name of an encoding; raise if Python does not know it."""
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError) as error:
        raise invalid_parameter(
            "encoding", encoding, "an encoding of text, such as 'utf-8', 'utf-16' or 'latin-1'"
        ) from error


def marked_encoding(first: bytes) -> str | None:
    """Return the encoding that the first bytes show by a byte order mark or by their zeros; otherwise None."""
    for mark, encoding in MARKS.items():
        if first.startswith(mark):
            return encoding
    whole = first[: len(first) // 2 * 2]
    for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = whole[offset::2], whole[1 - offset :: 2]
        if len(zeros) > 1 and zeros.count(0) >= SHARE_OF_ZEROS * len(zeros) and others.count(0) == 0:
            return encoding
    return None


def unmarked_encoding(pieces: Iterable[bytes]) -> str:
    """Return "utf-8" if all bytes are valid UTF-8, else Windows-1252, or Latin-1 if a byte is undefined in that.

    Parameters
    ----------
    pieces : iterable of bytes
        The text in pieces of any length, in order.
    """
    utf8 = codecs.getincrementaldecoder("utf-8")()
    is_utf8, has_meaning = True, True
    for piece in chain(pieces, [b""]):
        has_meaning = has_meaning and not any(byte in piece for byte in WITHOUT_MEANING)
        try:
            utf8.decode(piece, final=not piece)
        except UnicodeDecodeError:
            is_utf8 = False
            utf8.reset()
    return "utf-8" if is_utf8 else "cp1252" if has_meaning else "latin-1"
