"""The pieces in which Parquet and Arrow files are read, and the kinds of their columns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import DataFileError, invalid_parameter, shown

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}
# The kinds of columns that hold numbers, and the dtype of a column of such a kind; all other kinds are objects.
NUMBERS = {"flag": np.bool_, "whole": np.int64, "float32": np.float32, "float64": np.float64}


class Piece(NamedTuple):
    """Rows that are read together: a row group of a Parquet file, or an Arrow file.

    Attributes
    ----------
    path : str
    group : int or None
        The row group; None is the whole file.
    n_rows : int
    keys : dict
        The columns that are given by the names of folders, as in "year=2024", and their values.
    """

    path: str
    group: int | None
    n_rows: int
    keys: dict[str, Any]

    @property
    def place(self) -> str:
        """The name of the piece in errors."""
        return self.path if self.group is None else f"row group {self.group} of {self.path}"

    def batches(self, names: Sequence[str], rows_a_batch: int) -> Iterator[Any]:
        """Yield the named columns as record batches of Arrow with at most `rows_a_batch` rows each."""
        import pyarrow.dataset
        import pyarrow.parquet

        with reading(self):
            if self.group is None:
                arrow = pyarrow.dataset.dataset(self.path, format="ipc")
                yield from arrow.to_batches(columns=list(names), batch_size=rows_a_batch)
                return
            with pyarrow.parquet.ParquetFile(self.path) as file:
                yield from file.iter_batches(rows_a_batch, row_groups=[self.group], columns=list(names))


@contextmanager
def reading(piece: Piece) -> Iterator[None]:
    """Make errors of the reader inside the block name the file and the row group."""
    try:
        yield
    except DataFileError:
        raise
    except (OSError, KeyError, ValueError) as error:
        raise DataFileError(f"{piece.place} cannot be read: {shown(str(error))}") from error


def files_of(path: Any) -> list[tuple[Path, dict[str, Any]]]:
    """Return the data files of a path, a pattern or a folder, sorted, each with the columns that its folders name."""
    place = Path(path)
    if place.is_dir():
        inside = sorted(file for file in place.rglob("*") if file.suffix in FORMATS and file.is_file())
        return [(file, folder_keys(file.relative_to(place).parts[:-1])) for file in inside]
    if any(letter in place.name for letter in "*?["):
        return [(file, {}) for file in sorted(place.parent.glob(place.name)) if file.suffix in FORMATS]
    if place.suffix not in FORMATS or not place.is_file():
        raise invalid_parameter(
            "path", str(path), f"a file that is there and ends in .npy, {', '.join(FORMATS)}, or a folder of such"
        )
    return [(place, {})]


def folder_keys(folders: Sequence[str]) -> dict[str, Any]:
    """Return the columns that folders named "key=value" stand for; values that read as numbers become numbers."""
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {name: _number(value) for name, _, value in pairs}


def _number(text: str) -> float | str:
    """Return the number that a text holds, or the text."""
    try:
        return float(text)
    except ValueError:
        return text


def pieces_of(file: Path, keys: dict[str, Any]) -> tuple[list[Piece], dict[str, str]]:
    """Return the pieces of a file that have rows, and the kind of each column."""
    import pyarrow.dataset
    import pyarrow.parquet

    whole = Piece(str(file), None, 0, keys)
    with reading(whole):
        if FORMATS[file.suffix] == "ipc":
            arrow = pyarrow.dataset.dataset(str(file), format="ipc")
            schema, pieces = arrow.schema, [whole._replace(n_rows=arrow.count_rows())]
        else:
            with pyarrow.parquet.ParquetFile(file) as parquet:
                schema, groups = parquet.schema_arrow, range(parquet.metadata.num_row_groups)
                sizes = [parquet.metadata.row_group(group).num_rows for group in groups]
            pieces = [Piece(str(file), group, size, keys) for group, size in zip(groups, sizes, strict=True)]
    kinds = {field.name: kind_of(field.type) for field in schema}
    kinds |= {name: "text" if isinstance(value, str) else "float64" for name, value in keys.items()}
    return [piece for piece in pieces if piece.n_rows], kinds


def kind_of(arrow: Any) -> str:
    """Return the kind of a column of an Arrow type: one of `NUMBERS`, "text", or the name that Arrow gives it."""
    import pyarrow.types as types

    if types.is_boolean(arrow):
        return "flag"
    if types.is_integer(arrow):
        return "whole"
    if types.is_float32(arrow) or types.is_float16(arrow):
        return "float32"
    if types.is_floating(arrow) or types.is_decimal(arrow):
        return "float64"
    is_text = types.is_string(arrow) or types.is_large_string(arrow) or types.is_dictionary(arrow)
    return "text" if is_text else str(arrow)


def common_kinds(first: dict[str, str], kinds: dict[str, str], file: Path, of: Path) -> dict[str, str]:
    """Return the kinds that can hold the columns of two files; raise if a column is missing or has another kind.

    Numbers of two different kinds are float64 together: a file without decimals may hold whole numbers.
    """
    common = {}
    for name, kind in first.items():
        if name not in kinds:
            raise DataFileError(f"{file} has no column {shown(name)}, and {of} has: all files must have the same ones.")
        if kinds[name] != kind and not (kind in NUMBERS and kinds[name] in NUMBERS):
            raise DataFileError(
                f"column {shown(name)} is of kind {kinds[name]} in {file}, and {kind} in {of}: it must be of one kind."
            )
        common[name] = kind if kinds[name] == kind else "float64"
    return common
