"""`mercer data`: which sets there are, where they are, and to have them."""

import hashlib
import json

import numpy as np
import pytest
import sklearn.datasets
from typer.testing import CliRunner

from mercer import datasets
from mercer.app.cli.app import app
from mercer.datasets.catalog import ABOUT, ALL_SOURCES


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A user without a data folder whose cache is empty."""
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mercer"


@pytest.fixture
def home(monkeypatch):
    """The public home of CoverType: three rows, and how often they were asked for."""
    asked = []

    def fetch_covtype(return_X_y):
        asked.append(None)
        return np.arange(162.0).reshape(3, 54), np.array([1, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    return asked


def mercer(*arguments, width=100):
    return CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": str(width)})


def done(*arguments, **options):
    result = mercer(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(*arguments):
    result = mercer(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def places():
    return {entry["name"]: entry["place"] for entry in json.loads(done("list", "--json"))["sets"]}


@pytest.mark.parametrize("width", [80, 160])
def test_the_list_has_every_set_and_reads_none(monkeypatch, width):
    monkeypatch.setattr("mercer.datasets.sources.read_arrays", None)
    shown = done("list", width=width)
    assert set(ABOUT) == set(ALL_SOURCES)
    lines = shown.splitlines()
    assert all(len(line) <= width for line in lines if "folder" not in line)
    for name in ABOUT:
        assert any(line.startswith(f" {name} ") for line in lines), name
    assert "60,000 + 10,000" in shown


def test_the_list_says_where_each_is(tmp_path, monkeypatch, cache, home):
    assert places()["covtype"] == "to be fetched"
    assert places()["yaleb"] == "give its file"
    done("get", "covtype")
    assert places()["covtype"] == "cache"
    monkeypatch.setenv("MERCER_DATA", str(cache))
    assert places()["covtype"] == "MERCER_DATA"
    assert places()["adult"] == "to be fetched"
    document = json.loads(done("list", "--json"))
    assert document["folder"] == str(cache)
    assert [entry["path"] for entry in document["sets"] if entry["name"] == "covtype"] == [
        str(cache / "covtype_93k.npz")
    ]


def test_get_fetches_once_and_writes_a_checksum(cache, home):
    file = cache / "covtype_93k.npz"
    assert done("get", "covtype") == f"covtype: fetched into {file} (its checksum is right)\n"
    expected = f"{hashlib.sha256(file.read_bytes()).hexdigest()}  covtype_93k.npz\n"
    assert (cache / "covtype_93k.npz.sha256").read_text() == expected
    assert done("get", "covtype", "covtype") == f"covtype: in {file} (its checksum is right)\n"
    assert len(home) == 1
    assert "fetched into" in done("get", "covtype", "--fresh")
    assert len(home) == 2
    assert sorted(path.name for path in cache.iterdir()) == ["covtype_93k.npz", "covtype_93k.npz.sha256"]
    np.testing.assert_array_equal(datasets.load("covtype").y, [0, 1, 6])
    assert len(home) == 2


def test_get_into_another_folder(tmp_path, cache, home):
    folder = tmp_path / "new" / "folder"
    assert str(folder / "covtype_93k.npz") in done("get", "covtype", "--out", folder)
    assert not cache.exists()
    done("get", "covtype")
    for place in (tmp_path / "copies", cache):
        got = json.loads(done("get", "covtype", "--out", place, "--json"))["sets"]
        path = str(place / "covtype_93k.npz")
        assert got == [{"name": "covtype", "path": path, "fetched": False, "verified": "its checksum is right"}]
    assert len(home) == 2
    assert (tmp_path / "copies" / "covtype_93k.npz").read_bytes() == (cache / "covtype_93k.npz").read_bytes()
    assert (tmp_path / "copies" / "covtype_93k.npz.sha256").is_file()


def test_files_that_were_given_are_compared_with_those_of_the_results(tmp_path, monkeypatch):
    from mercer.datasets import catalog, sources

    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    arrays = {"X": np.zeros((2, 32, 32)), "y": np.array([0, 1])}
    np.savez(tmp_path / "coil20_32x32.npz", **arrays)
    assert "(other arrays than those of the published results)" in done("get", "coil20")
    monkeypatch.setitem(catalog.MEASURED_ON, "coil20_32x32.npz", sources.digest(arrays))
    assert "(the arrays of the published results)" in done("get", "coil20")


def test_a_digest_is_of_names_types_shapes_and_entries_in_any_order():
    from mercer.datasets.sources import digest

    arrays = {"b": np.arange(6, dtype=np.int32).reshape(2, 3), "a": np.array(["x", "yy"])}
    same = {"a": np.array(["x", "yy"]), "b": np.asfortranarray(arrays["b"].astype(">i4"))}
    assert digest(arrays) == digest(same)
    others = [
        {"c": arrays["b"], "a": arrays["a"]},
        {**arrays, "b": arrays["b"].astype(np.uint32)},
        {**arrays, "b": arrays["b"].reshape(3, 2)},
        {**arrays, "b": arrays["b"][::-1]},
    ]
    assert len({digest(arrays), *map(digest, others)}) == 5


def cut(path):
    path.write_bytes(path.read_bytes()[:200])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace(path):
    np.savez(path, rows=np.ones(3))
    path.with_name(f"{path.name}.sha256").unlink()


@pytest.mark.parametrize("damage", [cut, flip, replace])
def test_a_damaged_file_is_named_with_the_cure(cache, home, damage):
    done("get", "covtype")
    damage(cache / "covtype_93k.npz")
    with pytest.raises(ValueError, match=r"covtype_93k.npz' is damaged, .*: run `mercer data get covtype --fresh`"):
        datasets.load("covtype")
    assert "`mercer data get covtype --fresh`" in failed("get", "covtype")
    done("get", "covtype", "--fresh")
    assert datasets.load("covtype").X.shape == (3, 54)


def test_a_damaged_file_without_a_checksum(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    (tmp_path / "yaleb_48x42.npz").write_bytes(b"no archive")
    assert "is damaged" in (line := failed("get", "yaleb"))
    assert line.endswith("put a good copy in its place.\n")
    np.savez(tmp_path / "yaleb_48x42.npz", X=np.zeros((1, 2, 2)))
    assert "it has no array 'y'" in failed("get", "yaleb")


def test_without_a_network_it_says_so_and_leaves_nothing(monkeypatch, cache):
    def fetch_covtype(return_X_y):
        raise OSError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    assert "'covtype' is not available: MERCER_DATA is not set, and downloading it failed: no route" in failed(
        "get", "covtype"
    )
    assert "put yaleb_48x42.npz into a folder" in failed("get", "yaleb")
    assert json.loads(mercer("get", "covtype", "--json").stdout)["error"]
    assert not cache.exists()


def test_a_set_that_cannot_be_had_does_not_keep_others_from_coming(cache, home):
    result = mercer("get", "yaleb", "covtype", "coil20")
    assert result.exit_code == 1
    assert "covtype: fetched into" in result.stdout
    assert "'yaleb' is not available" in result.stderr
    assert "'coil20' is not available" in result.stderr
    assert (cache / "covtype_93k.npz").exists()


def test_unknown_names_are_found_before_anything_is_fetched(home):
    assert "NAME='imagenet'" in (line := failed("get", "covtype", "imagenet"))
    assert "'uci'" in line
    assert not home


def test_groups_stand_for_their_sets(monkeypatch, tmp_path):
    rows = {"X": np.ones((2, 1)), "y": np.ones(2), "test_idx": np.array([[0]])}
    arrays = {f"{name}_{part}": values for name in datasets.UCI_NAMES for part, values in rows.items()}
    np.savez(tmp_path / "uci_regression.npz", **arrays)
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    lines = done("get", "yacht", "uci").splitlines()
    assert sorted(line.split(":")[0] for line in lines) == sorted(datasets.UCI_NAMES)
    assert lines[0].startswith("yacht: in ")
