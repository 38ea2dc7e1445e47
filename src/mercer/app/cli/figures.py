"""Write the figures of `mercer demo`. A file is written whole or not at all."""

from io import BytesIO
from pathlib import Path
from typing import Any

from mercer.storage.atomic import check_target, write_atomically


def write_figure(figure: Any, path: Path, dpi: float) -> None:
    """Write a Matplotlib figure as a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    write_atomically(check_target(path), [buffer.getbuffer()])
