"""Where a model comes from: versions of packages and hashes of the data, so that the model can be reproduced."""

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("mercer", "numpy", "scikit-learn", "torch", "pandas")
BLOCK = 2**20


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that models depend on, by name."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hashes_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of each file by its name. Folders and standard input are left out."""
    return {path.name: sha256_of(path) for path in paths if path.is_file()}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
