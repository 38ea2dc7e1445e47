"""Convert values to those that JSON has."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: Any) -> Any:
    """Return a value made of JSON's types. Arrays become lists, and numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
