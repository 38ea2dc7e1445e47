"""The formats of tables, found by the ending of the file name or, if there is no name, by the first bytes."""

from pathlib import Path
from typing import Any, NamedTuple

from mercer.exceptions import DataFileError
from mercer.tables.frames import optional


class Format(NamedTuple):
    """A format of tables.

    Attributes
    ----------
    name : str
    reader : str
        Which reader of `raw_tables` reads it.
    writer : str
        The method of a data frame that writes it; "" if it is only read.
    options : dict
        Options of the writer.
    needs : str or None
        The library that it needs.
    """

    name: str
    reader: str
    writer: str
    options: dict[str, Any]
    needs: str | None = None


CSV = Format("CSV", "text", "to_csv", {"sep": ","})
TSV = Format("TSV", "text", "to_csv", {"sep": "\t"})
PARQUET = Format("Parquet", "parquet", "to_parquet", {}, "pyarrow")
FEATHER = Format("Feather", "feather", "to_feather", {}, "pyarrow")
EXCEL = Format("Excel", "excel", "to_excel", {}, "openpyxl")
JSON_LINES = Format("JSON lines", "json", "to_json", {"orient": "records", "lines": True, "date_format": "iso"})
# Formats that are read and written.
FORMATS: dict[str, Format] = {
    ".csv": CSV,
    ".tsv": TSV,
    ".parquet": PARQUET,
    ".feather": FEATHER,
    ".xlsx": EXCEL,
    ".jsonl": JSON_LINES,
}
# Formats that are only read.
TEXT = Format("text with columns", "text", "", {"sep": None})
ONLY_READ: dict[str, Format] = {
    ".txt": TEXT,
    ".dat": TEXT,
    ".data": TEXT,
    ".tab": TSV,
    ".ndjson": JSON_LINES,
    ".json": Format("JSON", "json", "", {}),
    ".xlsm": EXCEL,
}
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
UNPACKED = (*COMPRESSED, ".zip")
# The first bytes of files, for data without a file name.
FIRST_BYTES = {b"PAR1": PARQUET, b"ARROW1": FEATHER, b"PK\x03\x04": EXCEL, b"{": JSON_LINES}
PACKED_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}


def format_of(path: Path) -> Format:
    """Return the format of a file that is to be written, by its ending."""
    return _format_of(path, FORMATS, tuple(COMPRESSED))


def readable_format_of(path: Path) -> Format:
    """Return the format of a file that is to be read, by its ending."""
    return _format_of(path, FORMATS | ONLY_READ, UNPACKED)


def format_of_bytes(first: bytes) -> Format:
    """Return the format of a table by its first bytes; text is taken for CSV."""
    start = first.lstrip()
    return next((kind for begin, kind in FIRST_BYTES.items() if start.startswith(begin)), CSV)


def packing_of(path: Path) -> str | None:
    """Return the ending of a packed file, such as ".gz", or None."""
    ending = path.suffix.lower()
    return ending if ending in UNPACKED else None


def endings() -> str:
    """Return the endings of tables, for messages."""
    return "a file that ends in " + ", ".join(FORMATS)


def check_engine(kind: Format) -> None:
    """Raise if the library that a format needs is not installed."""
    if kind.needs is not None:
        optional(kind.needs, f"reading and writing {kind.name} files", "files")


def _format_of(path: Path, formats: dict[str, Format], packed: tuple[str, ...]) -> Format:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in packed:
        inner = formats.get("".join(suffixes[-2:-1]))
        if inner is not None and inner.reader in ("text", "json"):
            suffixes = suffixes[:-1]
    kind = formats.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise DataFileError(f"{str(path)!r} has no ending that says what table it is: use {endings()}.")
    return kind
