"""A catalog of the data sets: a description of each, where its file is, and how it is downloaded and verified."""

import os
from pathlib import Path
from typing import NamedTuple

from mercer.checks import check_choice
from mercer.datasets import SOURCES
from mercer.datasets.sources import (
    Source,
    checksum_file,
    data_folder,
    digest,
    fetch,
    find,
    keep,
    read,
    read_arrays,
    write_file,
)
from mercer.datasets.uci import UCI_SOURCES

ALL_SOURCES: dict[str, Source] = {**SOURCES, **UCI_SOURCES}


class About(NamedTuple):
    """The number of rows (including test rows) and of columns, and a description of the data set."""

    rows: str
    inputs: str
    what: str


ABOUT = {
    "mnist": About("60,000 + 10,000", "28 x 28", "handwritten digits"),
    "adult": About("32,561 + 16,281", "14", "a census: who earns over 50,000"),
    "covtype": About("92,962", "54", "16 % of Forest CoverType, 7 classes"),
    "cifar10": About("10,000 + 2,000", "32 x 32 x 3", "a fifth of CIFAR-10, photographs"),
    "yaleb": About("2,432", "48 x 42", "Extended Yale B, faces of 38 people"),
    "coil20": About("1,440", "32 x 32", "COIL-20, objects from 72 sides"),
    "boston": About("506", "13", "UCI: prices of houses"),
    "concrete": About("1,030", "8", "UCI: strength of concrete"),
    "energy": About("768", "8", "UCI: heating of buildings"),
    "kin8nm": About("8,192", "8", "UCI: reach of a robot's arm"),
    "power": About("9,568", "4", "UCI: output of a power plant"),
    "wine_red": About("1,599", "11", "UCI: quality of red wines"),
    "yacht": About("308", "6", "UCI: resistance of hulls"),
}
# The digests (`sources.digest`) of the arrays on which the published results were measured.
MEASURED_ON = {
    "adult.npz": "50891378560fc096ed08c511189cdd5c984c385bdae323b1157590c4ac0807c6",
    "cifar10_subset.npz": "b207d9a1e1f752465033986f78c5bc4d469c9524b0c7c52ec1b4ad1a5f406284",
    "coil20_32x32.npz": "4a98f60fcc0e81b9285977cded576769237462200361c7d5cd65af3277cda2f7",
    "covtype_93k.npz": "b0f7960cd72b861b946474e476b48a013d27f1d955a807ae31f49c2edbb93aac",
    "mnist.npz": "f5d4bf1f3ee7122e330bd1879bb91c569be34b0488b94808b4c3e58f5a69f90f",
    "uci_regression.npz": "924fd647e1d1f4c91819568f27fdbc653db918c03b935e4ee0d82d288a8aae2b",
    "yaleb_48x42.npz": "6a6d763d91e32f6a11c38b5ba340f16b83937a38233fbb6dc9539e64058dce75",
}
PLACES = {"given": "MERCER_DATA", "cache": "cache", "home": "to be fetched", "none": "give its file"}


class Entry(NamedTuple):
    """A data set and its file, which is None if there is none. `place` is one of PLACES."""

    name: str
    about: About
    place: str
    path: Path | None


class Got(NamedTuple):
    """The file of a data set, whether it was downloaded just now, and a text of `verified` about it."""

    name: str
    path: Path
    fetched: bool
    verified: str


def entries() -> list[Entry]:
    """Return all data sets and where they are, without reading any data."""
    found = {name: find(source) for name, source in ALL_SOURCES.items()}
    return [Entry(name, ABOUT[name], place(source, found[name]), found[name]) for name, source in ALL_SOURCES.items()]


def place(source: Source, path: Path | None) -> str:
    """Return where a data set is, as a key of PLACES, given its file or None."""
    if path is None:
        return "home" if source.has_home else "none"
    return "given" if os.environ.get("MERCER_DATA") else "cache"


def get(name: str, *, out: str | os.PathLike[str] | None = None, fresh: bool = False) -> Got:
    """Return the file of a data set: an existing file is read and verified, and a missing one is downloaded.

    Parameters
    ----------
    name : str
        One of `ALL_SOURCES`.
    out : str, path or None, default=None
        The folder for the file, instead of the data folder. It is created if it does not exist.
    fresh : bool, default=False
        Whether to download the file again and replace an existing one.

    Returns
    -------
    Got
    """
    check_choice("name", name, tuple(ALL_SOURCES))
    source = ALL_SOURCES[name]
    found = None if fresh else find(source)
    if found is None:
        path = keep(source, fetch(source), data_folder() if out is None else Path(out))
        read(source, path)
        return Got(name, path, True, verified(path))
    read(source, found)
    path = found if out is None else Path(out) / found.name
    if path.resolve() != found.resolve():
        write_file(path, found.read_bytes())
    return Got(name, path, False, verified(found))


def verified(path: Path) -> str:
    """Return a text on how a readable file was verified: by its checksum, or by the arrays of published results."""
    if checksum_file(path).is_file():
        return "its checksum is right"
    known = MEASURED_ON.get(path.name)
    if known is None:
        return "it can be read"
    same = digest(read_arrays(path)) == known
    return "the arrays of the published results" if same else "other arrays than those of the published results"
