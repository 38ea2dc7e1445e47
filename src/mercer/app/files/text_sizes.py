"""How far the texts of a Parquet file and the cells of an Excel sheet reach beyond what the file says of itself."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from mercer.tables.frames import optional

# Rows of a Parquet file that are looked at together, and the kinds of columns whose values have any length.
ROWS, TEXTS = 2**16, ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def refuse_nested(schema: Any) -> None:
    """Raise if a column of an Arrow schema holds lists or records: a few bytes of these stand for many values."""
    types = optional("pyarrow.types", "a file of Arrow's kinds", "files")
    for field in schema:
        if types.is_nested(field.type):
            raise ValueError(f"its column {field.name!r} holds lists or records, where a table has one value a cell")


def growing_text_size(file: BinaryIO) -> Iterator[int]:
    """Yield the bytes that the texts of a Parquet file take, row by row, after some more rows each time.

    A text that comes again is stored once, so that the file and its description may be small where the texts are not.
    They are counted without being written out.
    """
    parquet = optional("pyarrow.parquet", "a file of the kind Parquet", "files")
    compute = optional("pyarrow.compute", "a file of the kind Parquet", "files")
    about = parquet.ParquetFile(file)
    refuse_nested(about.schema_arrow)
    columns = [about.schema.column(i) for i in range(len(about.schema))]
    texts = [column.path for column in columns if column.physical_type in TEXTS]
    file.seek(0)
    size, batches = 0, parquet.ParquetFile(file, read_dictionary=texts).iter_batches(ROWS, columns=texts)
    for batch in batches if texts else ():
        for column in batch.columns:
            if hasattr(column, "dictionary"):
                lengths = compute.binary_length(column.dictionary).take(column.indices)
                size += compute.sum(compute.cast(lengths, "int64")).as_py() or 0
            else:
                size += column.nbytes
        yield size


def growing_cell_count(file: BinaryIO) -> Iterator[int]:
    """Yield rows times the width of the widest row of the first sheet of an Excel file, row by row.

    Rows that are not there count where later ones are, as they do when the sheet becomes a table.
    """
    book = optional("openpyxl", "a file of the kind Excel", "files").load_workbook(file, read_only=True)
    try:
        sheet, width = book.worksheets[0], 0
        sheet.reset_dimensions()  # what it says of its own size need not be so
        for row, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            width = max(width, len(cells))
            yield row * width
    finally:
        book.close()
