"""Where data come from: a file in the user's folder if there is one, else their public home."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

Data = TypeVar("Data")


def read_or_fetch(
    name: str, file: str, from_file: Callable[[dict[str, np.ndarray]], Data], fetch: Callable[[], Data]
) -> Data:
    """Return a data set from `file` in the folder that MERCER_DATA names, or fetch it where there is no such file."""
    folder = os.environ.get("MERCER_DATA")
    if folder and (Path(folder) / file).is_file():
        with np.load(Path(folder) / file) as arrays:
            return from_file({key: arrays[key] for key in arrays.files})
    try:
        return fetch()
    except OSError as error:
        where = f"MERCER_DATA={folder!r} has no {file}" if folder else "MERCER_DATA is not set"
        message = f"the data set {name!r} cannot be had: {where}, and fetching it failed: {error}"
        raise ConnectionError(message) from error
