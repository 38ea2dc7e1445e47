"""Measure the texts of a Parquet file and the cells of an Excel sheet, which can be larger than the file says."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from mercer.tables.frames import optional

# The rows of a Parquet file that are measured at a time, and the types of columns whose values can have any length.
ROWS, TEXTS = 2**16, ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def refuse_nested(schema: Any) -> None:
    """Raise if a column of an Arrow schema holds lists or records, of which a few bytes can stand for many values."""
    types = optional("pyarrow.types", "reading Parquet and Feather files", "files")
    for field in schema:
        if types.is_nested(field.type):
            raise ValueError(
                f"its column {field.name!r} holds lists or records, but a table has one value in each cell"
            )


def growing_text_size(file: BinaryIO) -> Iterator[int]:
    """Yield how many bytes the texts of a Parquet file take so far, after each batch of rows.

    A repeated text is stored only once, so that the file and its description can be small although the texts are not.
    The texts are counted without being expanded.
    """
    parquet = optional("pyarrow.parquet", "reading Parquet files", "files")
    compute = optional("pyarrow.compute", "reading Parquet files", "files")
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
    """Yield the number of cells of the first sheet of an Excel file so far: rows times the width of the widest row.

    Empty rows before later ones count, as they do when the sheet becomes a table.
    """
    book = optional("openpyxl", "reading Excel files", "files").load_workbook(file, read_only=True)
    try:
        sheet, width = book.worksheets[0], 0
        sheet.reset_dimensions()  # the size that the sheet states can be wrong
        for row, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            width = max(width, len(cells))
            yield row * width
    finally:
        book.close()
