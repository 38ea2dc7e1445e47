"""Read and write data: tables in files, and images in folders."""

from mercer.app.files.images import ImageFolder, read_images
from mercer.app.files.reading import ReadOptions, read_described
from mercer.app.files.tables import read_table, write_table

__all__ = ["ImageFolder", "ReadOptions", "read_described", "read_images", "read_table", "write_table"]
