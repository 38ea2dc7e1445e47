"""The data sets of the experiments, read from a folder of files or downloaded into a cache."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.checks import check_choice
from mercer.datasets.sources import Arrays, Source, read_or_fetch
from mercer.datasets.uci import UCI_NAMES, FixedSplits, uci_regression

__all__ = ["NAMES", "UCI_NAMES", "Dataset", "FixedSplits", "load", "uci_regression"]

# The first images at OpenML are the training images.
MNIST_TRAINING_IMAGES = 60_000
# The experiments use 16 % of Forest CoverType, drawn such that the shares of the classes do not change.
COVTYPE_ROWS = 92_962
# Of CIFAR-10 the experiments use the first images of each class: these numbers for training and for testing.
CIFAR10_TRAINING_IMAGES, CIFAR10_IMAGES_A_CLASS = 50_000, (1000, 200)


class Dataset(NamedTuple):
    """Rows or images with their targets. The test part is None if the data set has no split of its own."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    categorical: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None


def load(name: str) -> Dataset:
    """Return a data set by its name: "mnist", "adult", "covtype", "cifar10", "yaleb" or "coil20".

    "covtype" is 16 % of the original set, with the same shares of the classes. "cifar10" is a fifth: the first 1000
    training and 200 test images of each class. Pixels are float32 numbers in [0, 1]. "mnist" has rows of 784 pixels,
    and "cifar10" has images of shape (32, 32, 3).

    The set is read from the folder that the environment variable MERCER_DATA names or, if that is not set, from
    Mercer's cache. If it is not there, it is downloaded with scikit-learn and kept there. "yaleb" and "coil20" cannot
    be downloaded.
    """
    check_choice("name", name, NAMES)
    return read_or_fetch(SOURCES[name])


def _mnist_from_file(arrays: Arrays) -> Dataset:
    images, test = (arrays[key].reshape(len(arrays[key]), -1).astype(np.float32) / 255.0 for key in ("X", "X_test"))
    return Dataset(images, arrays["y"].astype(np.int64), test, arrays["y_test"].astype(np.int64))


def _mnist_from_home() -> Arrays:
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False, parser="liac-arff")
    X, y = X.astype(np.uint8).reshape(-1, 28, 28), y.astype(np.uint8)
    n = MNIST_TRAINING_IMAGES
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def _adult_from_file(arrays: Arrays) -> Dataset:
    names = tuple(str(name) for name in arrays["feature_names"])
    return Dataset(
        arrays["X"].astype(np.float64),
        arrays["y"],
        arrays["X_test"].astype(np.float64),
        arrays["y_test"],
        arrays["categorical"].astype(bool),
        names,
    )


def _adult_from_home() -> Arrays:
    from sklearn.datasets import fetch_openml

    frame = fetch_openml("adult", version=2, as_frame=True)
    categorical = np.array([dtype.name == "category" for dtype in frame.data.dtypes])
    columns = []
    for name, is_coded in zip(frame.data.columns, categorical, strict=True):
        column = frame.data[name]
        # A missing value is a category of its own, after the others, like '?' in the original files.
        codes = column.cat.codes.replace(-1, len(column.cat.categories)) if is_coded else column
        columns.append(np.asarray(codes, dtype=np.float64))
    X, y = np.column_stack(columns), frame.target.astype(str).str.startswith(">50K").to_numpy().astype(np.int64)
    # At OpenML, the 16 281 rows of the original test file come first.
    named = {"categorical": categorical, "feature_names": np.array(list(frame.data.columns), dtype=str)}
    return {"X": X[16281:], "y": y[16281:], "X_test": X[:16281], "y_test": y[:16281], **named}


def _covtype_from_file(arrays: Arrays) -> Dataset:
    names = tuple(str(name) for name in arrays["feature_names"]) if "feature_names" in arrays else None
    return Dataset(arrays["X"].astype(np.float32), arrays["y"].astype(np.int64), feature_names=names)


def _covtype_from_home() -> Arrays:
    from sklearn.datasets import fetch_covtype
    from sklearn.model_selection import train_test_split

    X, y = fetch_covtype(return_X_y=True)
    if len(X) > COVTYPE_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=COVTYPE_ROWS, random_state=0, stratify=y)
    return {"X": X.astype(np.float32), "y": y.astype(np.int64) - 1}


def _cifar10_from_file(arrays: Arrays) -> Dataset:
    images, test = (arrays[key].astype(np.float32) / 255.0 for key in ("X", "X_test"))
    return Dataset(images, arrays["y"].astype(np.int64), test, arrays["y_test"].astype(np.int64))


def _cifar10_from_home() -> Arrays:
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml("CIFAR_10", version=1, return_X_y=True, as_frame=False, parser="liac-arff")
    y = y.astype(np.int64)
    arrays = {}
    # As in the original files, the training images come first, and each image has a red, a green and a blue plane.
    parts = slice(None, CIFAR10_TRAINING_IMAGES), slice(CIFAR10_TRAINING_IMAGES, None)
    for suffix, part, count in zip(("", "_test"), parts, CIFAR10_IMAGES_A_CLASS, strict=True):
        kept = _first_of_each_class(y[part], count)
        arrays[f"X{suffix}"] = X[part][kept].astype(np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays[f"y{suffix}"] = y[part][kept]
    return arrays


def _first_of_each_class(y: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the first `count` rows of each class, in ascending order."""
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:count] for label in np.unique(y)]))


def _images_from_file(arrays: Arrays) -> Dataset:
    images = arrays["X"]
    scale = 255.0 if images.dtype == np.uint8 else 1.0
    return Dataset(images.astype(np.float32) / np.float32(scale), arrays["y"].astype(np.int64))


def _no_home(name: str, file: str) -> Callable[[], Arrays]:
    def fetch() -> Arrays:
        raise FileNotFoundError(
            f"{name} cannot be downloaded: put {file} into a folder, with "
            "images X and classes y, and set MERCER_DATA to it."
        )

    return fetch


def _images(name: str, title: str, file: str) -> Source:
    return Source(name, (file,), _images_from_file, _no_home(title, file), has_home=False)


SOURCES = {
    source.name: source
    for source in (
        Source("mnist", ("mnist.npz",), _mnist_from_file, _mnist_from_home),
        Source("adult", ("adult.npz",), _adult_from_file, _adult_from_home),
        Source("covtype", ("covtype_93k.npz",), _covtype_from_file, _covtype_from_home),
        Source("cifar10", ("cifar10_subset.npz",), _cifar10_from_file, _cifar10_from_home),
        _images("yaleb", "Extended Yale B", "yaleb_48x42.npz"),
        _images("coil20", "COIL-20", "coil20_32x32.npz"),
    )
}
NAMES = tuple(SOURCES)
