"""Write a page for each public name of Mercer into docs/api/, from which autodoc makes the reference.

The page of a class has its constructor and its own methods, and that of a module all its public classes and functions.
"""

import inspect
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from plain_docstrings import as_restructured_text

import mercer

FOLDER = Path(__file__).parent / "api"

# The families of the reference, in the order of the pages. Every public name must be in one of them.
FAMILIES: dict[str, tuple[str, ...]] = {
    "Tables": (
        "GPClassifier",
        "GPRegressor",
        "RFMRegressor",
        "RFMClassifier",
        "tabular",
        "TabularModel",
        "TableEncoder",
        "ColumnWarp",
        "explain",
        "explore",
        "agop",
        "selection",
    ),
    "Classes": ("KernelDiscriminant", "MCR2"),
    "Representations": (
        "KernelEmbedding",
        "Nystrom",
        "losses",
        "views",
        "training",
        "embedding",
        "landmarks",
        "networks",
        "image_features",
    ),
    "Groups": ("SubspaceClustering", "ManifoldClustering", "NMCE", "clustering", "sinkhorn"),
    "Kernels and metrics": ("kernels", "Mahalanobis", "linalg"),
    "Figures and scores": ("plots", "metrics"),
    "Papers as printed": ("papers",),
    "Files and data": ("save", "load", "rows", "datasets", "app.files", "app.projects", "exceptions"),
}

# Modules whose classes and functions are in separate files.
PARTS: dict[str, tuple[str, ...]] = {
    "clustering": (
        "mercer.clustering.expression",
        "mercer.clustering.spectral",
        "mercer.clustering.affinity",
        "mercer.clustering.trees",
        "mercer.clustering.manifold.principal_samples",
        "mercer.clustering.manifold.projections",
    ),
    "embedding": (
        "mercer.embedding.exact",
        "mercer.embedding.steps",
        "mercer.embedding.alternate",
        "mercer.embedding.preconditioners",
        "mercer.embedding.probes",
        "mercer.embedding.linear_probe",
    ),
    "training": ("mercer.training.recipe", "mercer.training.values"),
}


def main() -> None:
    """Write all pages."""
    named = {name for names in FAMILIES.values() for name in names}
    if missing := set(mercer.__all__) - named:
        raise SystemExit(f"FAMILIES of docs/make_api.py lacks {sorted(missing)}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for family, names in FAMILIES.items():
        for name in names:
            (FOLDER / f"{name}.rst").write_text(page(name, public(name)))
        entries = "\n".join(f"   {name}" for name in names)
        text = f"{heading(family)}\n{overview(names)}\n.. toctree::\n   :hidden:\n\n{entries}\n"
        (FOLDER / f"{family.lower().replace(' ', '-')}.rst").write_text(text)


def public(name: str) -> Any:
    """Return the object for a name of FAMILIES: a public name, or a module with values for parameters."""
    return getattr(mercer, name) if name in mercer.__all__ else import_module(f"mercer.{name}")


def heading(text: str, mark: str = "=") -> str:
    """Return a title with its underline."""
    return f"{text}\n{mark * len(text)}\n"


def page(name: str, value: Any) -> str:
    """Return the page of one public name."""
    if isinstance(value, ModuleType):
        return f"{heading(f'mercer.{name}')}\n{module_text(f'mercer.{name}', PARTS.get(name, ()))}"
    return f"{heading(name)}\n{entry('mercer', name, value)}"


def module_text(path: str, parts: tuple[str, ...]) -> str:
    """Return the text of the page of a module: its docstring, and its names or those of its parts."""
    text = f".. automodule:: {path}\n\n"
    if parts:
        return text + "".join(f"{heading(part, '-')}\n{module_text(part, ())}" for part in parts)
    return text + "".join(entry(path, name, value) for name, value in public_names(import_module(path)))


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the classes and functions of a module: those of `__all__`, or those that it defines."""
    for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
        value = getattr(module, name)
        own = hasattr(module, "__all__") or getattr(value, "__module__", "") == module.__name__
        if own and (inspect.isclass(value) or inspect.isfunction(value)):
            yield name, value


def entry(path: str, name: str, value: Any) -> str:
    """Return the directive for a class, with its own methods, or for a function."""
    if not inspect.isclass(value):
        return f".. autofunction:: {path}.{name}\n\n"
    methods = ", ".join(own_methods(value))
    members = f"   :members: {methods}\n" if methods else ""
    return f".. autoclass:: {path}.{name}\n{members}\n"


def own_methods(value: type) -> list[str]:
    """Return the public methods with a docstring that Mercer defines; those of scikit-learn are in its own manual."""
    return [
        name
        for name, member in inspect.getmembers(value, callable)
        if not name.startswith("_")
        and (getattr(member, "__module__", None) or "").startswith("mercer")
        and getattr(member, "__doc__", None)
    ]


def overview(names: tuple[str, ...]) -> str:
    """Return a table of the names of a family, each with the first sentence of its docstring."""
    rows = []
    for name in names:
        first = (inspect.getdoc(public(name)) or "").split("\n\n")[0].split("\n")
        rows.append(f"   * - :doc:`{name}`\n     - {' '.join(as_restructured_text(first))}")
    return ".. list-table::\n   :widths: 30 70\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
