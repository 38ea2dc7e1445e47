"""Find the source tree that holds the experiments. Shell completion imports this module, so it must load quickly."""

import sys
from pathlib import Path

import mercer

# The root of a source tree is this many folders above the package's (src/mercer/__init__.py).
ROOT_OF_PACKAGE = 2


def find_checkout() -> Path | None:
    """Return the root of the source tree: the current folder, one above it, or the folder the package is in."""
    here = Path.cwd()
    package = Path(mercer.__file__).resolve().parents[ROOT_OF_PACKAGE]
    return next((folder for folder in (here, *here.parents, package) if is_checkout(folder)), None)


def is_checkout(folder: Path) -> bool:
    """Return whether a folder holds both the experiments and the library's source."""
    return (folder / "experiments" / "runner.py").is_file() and (folder / "src" / "mercer" / "__init__.py").is_file()


def enter_checkout() -> Path:
    """Return the root of the source tree, and put it on the path so that `experiments` can be imported."""
    root = find_checkout()
    if root is None:
        raise FileNotFoundError(
            "the experiments are part of Mercer's repository, not of the installed package: get it with `git clone`, "
            "and run this command inside it."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return root


def experiment_names() -> list[str]:
    """Return the names of the experiments, or none where there is no source tree."""
    root = find_checkout()
    return [] if root is None else sorted(path.parent.name for path in (root / "experiments").glob("*/experiment.py"))
