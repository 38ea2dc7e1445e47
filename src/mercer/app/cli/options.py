"""Options that several commands share, on their way to what reads and writes tables."""

from typing import NamedTuple


class TableOptions(NamedTuple):
    """How tables are read and written: MiB that one may take, and whether formulas in texts are made harmless."""

    max_mb: float | None = None
    safe_csv: bool = False


PLAIN = TableOptions()
