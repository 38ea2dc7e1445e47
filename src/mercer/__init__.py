"""Mercer: kernel machines that learn their features.

A kernel, a metric that bends it, landmarks that make it affordable, an objective that says what to learn. Public
names are loaded when they are first used, so that importing the package is quick.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer import (
        agop,
        clustering,
        datasets,
        explain,
        kernels,
        landmarks,
        linalg,
        losses,
        metrics,
        plots,
        rows,
        selection,
        sinkhorn,
        views,
    )
    from mercer.clustering.manifold.manifold_clustering import ManifoldClustering
    from mercer.clustering.manifold.nmce import NMCE
    from mercer.clustering.subspace.subspace_clustering import SubspaceClustering
    from mercer.discriminant.kernel_discriminant import KernelDiscriminant
    from mercer.embedding.kernel_embedding import KernelEmbedding
    from mercer.embedding.mcr2 import MCR2
    from mercer.embedding.nystrom import Nystrom
    from mercer.io import load, save
    from mercer.mahalanobis import Mahalanobis
    from mercer.tables import TableEncoder, TabularModel, tabular
    from mercer.tabular_models.column_warp import ColumnWarp
    from mercer.tabular_models.gp import GPRegressor
    from mercer.tabular_models.gp_classifier import GPClassifier
    from mercer.tabular_models.rfm import RFMClassifier, RFMRegressor

try:
    __version__ = version("mercer")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

# name -> the module that defines it; None for a module of that name
_HOMES: dict[str, str | None] = {
    "GPClassifier": "mercer.tabular_models.gp_classifier",
    "GPRegressor": "mercer.tabular_models.gp",
    "ColumnWarp": "mercer.tabular_models.column_warp",
    "KernelDiscriminant": "mercer.discriminant.kernel_discriminant",
    "KernelEmbedding": "mercer.embedding.kernel_embedding",
    "MCR2": "mercer.embedding.mcr2",
    "NMCE": "mercer.clustering.manifold.nmce",
    "Mahalanobis": "mercer.mahalanobis",
    "ManifoldClustering": "mercer.clustering.manifold.manifold_clustering",
    "Nystrom": "mercer.embedding.nystrom",
    "RFMClassifier": "mercer.tabular_models.rfm",
    "RFMRegressor": "mercer.tabular_models.rfm",
    "SubspaceClustering": "mercer.clustering.subspace.subspace_clustering",
    "TableEncoder": "mercer.tables.encoder",
    "TabularModel": "mercer.tables.model",
    "agop": None,
    "clustering": None,
    "datasets": None,
    "explain": None,
    "kernels": None,
    "landmarks": None,
    "linalg": None,
    "load": "mercer.io",
    "losses": None,
    "metrics": None,
    "plots": None,
    "rows": None,
    "save": "mercer.io",
    "selection": None,
    "sinkhorn": None,
    "tabular": "mercer.tables.model",
    "views": None,
}

__all__ = [
    "ColumnWarp",
    "GPClassifier",
    "GPRegressor",
    "KernelDiscriminant",
    "KernelEmbedding",
    "MCR2",
    "Mahalanobis",
    "ManifoldClustering",
    "NMCE",
    "Nystrom",
    "RFMClassifier",
    "RFMRegressor",
    "SubspaceClustering",
    "TableEncoder",
    "TabularModel",
    "agop",
    "clustering",
    "datasets",
    "explain",
    "kernels",
    "landmarks",
    "linalg",
    "load",
    "losses",
    "metrics",
    "plots",
    "rows",
    "save",
    "selection",
    "sinkhorn",
    "tabular",
    "views",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}; it has {', '.join(__all__)}.")
    home = _HOMES[name]
    value = import_module(f"mercer.{name}") if home is None else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
