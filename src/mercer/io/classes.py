"""The classes that a model file may name; no other class is looked up, imported or instantiated."""

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

import mercer
import mercer.clustering.expression
import mercer.clustering.subspace
import mercer.kernels
import mercer.views
from mercer.exceptions import ModelFileError, shown

# Steps of scikit-learn that may precede Mercer's estimators in a pipeline. Like ours, they are saved by parameters and
# fitted attributes. A class belongs here only if all its attributes can be saved and it has a schema.
SCIKIT_LEARN: dict[str, str] = {
    "sklearn.decomposition.PCA": "sklearn.decomposition:PCA",
    "sklearn.pipeline.Pipeline": "sklearn.pipeline:Pipeline",
    "sklearn.preprocessing.MinMaxScaler": "sklearn.preprocessing:MinMaxScaler",
    "sklearn.preprocessing.StandardScaler": "sklearn.preprocessing:StandardScaler",
}

# Results that fitted attributes may hold, as "module:attribute". They are named tuples, and dataclasses whose
# constructors take all their fields.
RESULTS: dict[str, str] = {
    "mercer.embedding.Augmented": "mercer.views.sources:Augmented",
    "mercer.embedding.Alternate": "mercer.embedding.alternate:Alternate",
    "mercer.embedding.Decoder": "mercer.embedding.decoder:Decoder",
    "mercer.embedding.Exact": "mercer.embedding.exact:Exact",
    "mercer.embedding.GaussNewton": "mercer.embedding.preconditioners:GaussNewton",
    "mercer.embedding.Identity": "mercer.embedding.preconditioners:Identity",
    "mercer.embedding.KernelMatrix": "mercer.embedding.preconditioners:KernelMatrix",
    "mercer.embedding.Moments": "mercer.embedding.moments:Moments",
    "mercer.embedding.Steps": "mercer.embedding.steps:Steps",
    "mercer.embedding.White": "mercer.embedding.preconditioners:White",
    "mercer.tabular_models.AverageGradients": "mercer.tabular_models.learned_on_all_rows:AverageGradients",
    "mercer.tabular_models.MaximumLikelihood": "mercer.tabular_models.learned_on_all_rows:MaximumLikelihood",
    "mercer.tabular_models.Calibration": "mercer.tabular_models.calibration:Calibration",
    "mercer.tabular_models.FoldScores": "mercer.tabular_models.cv_plus:FoldScores",
    "mercer.tabular_models.LatentMachine": "mercer.tabular_models.latent_machine:LatentMachine",
    "mercer.tabular_models.Machine": "mercer.tabular_models.machine:Machine",
    "mercer.tabular_models.Partition": "mercer.tabular_models.partition:Partition",
    "mercer.tabular_models.NoiseLevel": "mercer.tabular_models.noise_level:NoiseLevel",
    "mercer.tabular_models.Spread": "mercer.tabular_models.spread:Spread",
    "mercer.tabular_models.TargetWarp": "mercer.tabular_models.target_warp:TargetWarp",
    "mercer.tables.EncodedColumn": "mercer.tables.columns:EncodedColumn",
    "mercer.tables.Numbers": "mercer.tables.readers:Numbers",
    "mercer.tables.Dates": "mercer.tables.readers:Dates",
    "mercer.tables.Categories": "mercer.tables.readers:Categories",
    "mercer.tables.LevelMeans": "mercer.tables.level_means:LevelMeans",
    "mercer.tables.Texts": "mercer.tables.text:Texts",
    "mercer.training.Adam": "mercer.training.values:Adam",
    "mercer.training.Cosine": "mercer.training.values:Cosine",
    "mercer.training.Recipe": "mercer.training.recipe:Recipe",
    "mercer.training.SGD": "mercer.training.values:SGD",
}

# Workflows on the files of users. They are on a higher floor and are therefore only imported when a file names them.
WORKFLOWS: dict[str, str] = {
    "mercer.app.projects.DataClustering": "mercer.app.projects.clustering:DataClustering",
    "mercer.app.projects.DataEmbedding": "mercer.app.projects.embedding:DataEmbedding",
    "mercer.app.projects.TablePrediction": "mercer.app.projects.table_prediction:TablePrediction",
}


def addresses() -> dict[str, str]:
    """Return the names that files use and where each is defined, as "module:attribute".

    Files use the public name of a class, so that it may move from one module to another.
    """
    public = {f"mercer.{name}": f"{home}:{name}" for name, home in mercer._HOMES.items() if home is not None}
    rooms = (mercer.kernels, mercer.views, mercer.clustering.expression, mercer.clustering.subspace)
    values = {f"{room.__name__}.{name}": f"{room.__name__}:{name}" for room in rooms for name in room.__all__}
    return public | values | SCIKIT_LEARN | WORKFLOWS | RESULTS


def class_name(kind: type) -> str | None:
    """Return the name of a class in files, or None if it is not one that may be saved."""
    for name, address in addresses().items():
        # Only a class of the same name is imported, so that the others need not be importable.
        named_alike = address.rpartition(":")[2] == kind.__name__
        if named_alike and resolve(address) is kind and is_allowed(name, kind):
            return name
    return None


def find_class(name: str) -> type:
    """Return the class that has this name in files, or raise an error if it may not be loaded."""
    address = addresses().get(name)
    if address is None:
        raise ModelFileError(f"asks for the class {shown(name)}, which is not one that may be loaded")
    kind = resolve(address)
    if not isinstance(kind, type) or not is_allowed(name, kind):
        raise ModelFileError(f"asks for {shown(name)}, which is not a class of models")
    return kind


def resolve(address: str) -> Any:
    """Import and return what is at "module:attribute"."""
    module, _, attribute = address.partition(":")
    return getattr(import_module(module), attribute)


def is_allowed(name: str, kind: type) -> bool:
    """Whether the class of that name may be saved and loaded: an estimator, or a result listed as such."""
    return is_estimator(kind) or (name in RESULTS and is_result(kind))


def is_estimator(kind: type) -> bool:
    """Whether the class is an estimator, a kernel or a metric that can be instantiated."""
    return issubclass(kind, BaseEstimator) and not inspect.isabstract(kind)


def is_result(kind: type) -> bool:
    """Whether the class is a dataclass or a named tuple, whose objects are a fixed set of fields."""
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def result_fields(kind: type) -> list[str]:
    """Return the names of the fields of a named tuple or dataclass."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return list(kind._fields)  # type: ignore[attr-defined]


def is_attribute(kind: type, name: str) -> bool:
    """Whether objects of the class may have an attribute of that name: it hides no method or property."""
    hidden = inspect.getattr_static(kind, name, None)
    hides = callable(hidden) or hasattr(hidden, "__get__")
    return name.isidentifier() and not name.startswith("__") and not hides
