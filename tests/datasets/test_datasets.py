"""Data sets: from a folder of files where there is one, else from their homes, else with clear words."""

import io
import zipfile

import numpy as np
import pytest
import sklearn.datasets

from mercer import datasets
from mercer.datasets import sources
from mercer.datasets.sources import data_folder
from mercer.exceptions import DataFileError, DataWarning


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mercer"


def same(a, b):
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            assert x is y
        else:
            np.testing.assert_array_equal(x, y)
            assert np.asarray(x).dtype == np.asarray(y).dtype


def test_a_file_in_the_folder_is_read(tmp_path, monkeypatch):
    images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    np.savez(tmp_path / "mnist.npz", X=images, y=np.array([3, 1], np.uint8), X_test=images[:1], y_test=np.array([3]))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.load("mnist")
    assert data.X.shape == (2, 16)
    assert data.X.dtype == np.float32
    np.testing.assert_allclose(data.X[1], images[1].ravel() / 255, rtol=1e-6)
    np.testing.assert_array_equal(data.y, [3, 1])
    assert data.X_test.shape == (1, 16)


def test_arrays_of_a_file_take_no_more_than_it_has(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "yaleb_48x42.npz", "w") as file:
        file.writestr("X.npy", claim.getvalue() + bytes(80))
    with pytest.raises(DataFileError, match=r"'X.npy' says that it has 8000000000000 bytes, and has 80: put a good"):
        datasets.load("yaleb")
    monkeypatch.setattr(sources, "MOST_UNPACKED", 2**20)
    np.savez_compressed(tmp_path / "yaleb_48x42.npz", X=np.zeros((2000, 48, 42), np.uint8), y=np.zeros(2000))
    assert (tmp_path / "yaleb_48x42.npz").stat().st_size < 2**15
    with pytest.raises(DataFileError, match="its arrays take .* bytes, and at most 1048576 are allowed"):
        datasets.load("yaleb")


def test_without_a_file_it_is_fetched(monkeypatch, tmp_path):
    def fetch_covtype(return_X_y):
        return np.ones((3, 54)), np.array([1, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.load("covtype")
    np.testing.assert_array_equal(data.y, [0, 1, 6])
    assert data.X_test is None


def test_the_folder_is_the_one_named_or_the_cache(monkeypatch, tmp_path, cache):
    monkeypatch.delenv("MERCER_DATA", raising=False)
    assert data_folder() == cache
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "mercer"
    monkeypatch.setenv("MERCER_DATA", "given")
    assert str(data_folder()) == "given"


@pytest.mark.parametrize("name", ["mnist", "adult", "covtype", "cifar10"])
def test_what_was_fetched_is_the_same_when_it_is_read_again(monkeypatch, cache, name):
    pd = pytest.importorskip("pandas")
    asked = []

    def fetch_openml(name, return_X_y=False, **options):
        asked.append(name)
        if name == "mnist_784":
            return np.random.default_rng(0).integers(0, 256, (4, 784)).astype(float), np.array(["7", "0", "9", "1"])
        if name == "CIFAR_10":
            return np.random.default_rng(0).integers(0, 256, (12, 3072)), np.array(list("010101101010"))
        rows = np.arange(16283)
        kinds = pd.Categorical(np.where(rows % 3 == 0, None, np.where(rows % 2 == 0, "a", "b")))
        target = pd.Series(np.where(rows % 4 == 0, ">50K", "<=50K"))
        return sklearn.utils.Bunch(data=pd.DataFrame({"age": rows + 0.5, "kind": kinds}), target=target)

    def fetch_covtype(return_X_y):
        asked.append("covtype")
        return np.arange(162.0).reshape(3, 54), np.array([1, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(datasets, "MNIST_TRAINING_IMAGES", 3)
    monkeypatch.setattr(datasets, "CIFAR10_TRAINING_IMAGES", 8)
    first = datasets.load(name)
    same(first, datasets.load(name))
    assert len(asked) == 1
    assert len(list(cache.iterdir())) == 2
    if name == "mnist":
        expected = np.random.default_rng(0).integers(0, 256, (4, 784)) / 255
        np.testing.assert_allclose(first.X, expected[:3], rtol=1e-6)
        np.testing.assert_allclose(first.X_test, expected[3:], rtol=1e-6)
        assert (first.y.tolist(), first.y_test.tolist()) == ([7, 0, 9], [1])
    if name == "adult":
        assert len(first.X) == 2
        assert first.feature_names == ("age", "kind")
        np.testing.assert_array_equal(first.categorical, [False, True])
        np.testing.assert_array_equal(first.X, [[16281.5, 2.0], [16282.5, 0.0]])


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_fail(monkeypatch, tmp_path):
    def fetch_covtype(return_X_y):
        return np.ones((3, 54)), np.array([1, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    (tmp_path / "file").touch()
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "file"))
    with pytest.warns(DataWarning, match="'covtype' will be downloaded again next time: it cannot be kept in .*file"):
        assert len(datasets.load("covtype").X) == 3


def test_without_a_network_the_error_says_what_to_do(monkeypatch):
    def fetch_covtype(return_X_y):
        raise OSError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(ConnectionError, match=r"'covtype' is not available: MERCER_DATA is not set, .*no route"):
        datasets.load("covtype")


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match=r"name='imagenet' .*'mnist', 'adult', 'covtype', 'cifar10'"):
        datasets.load("imagenet")


def test_images_of_cifar10_keep_their_shape(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    y = np.array([0, 9, 3], np.uint8)
    np.savez(tmp_path / "cifar10_subset.npz", X=images, y=y, X_test=images[1:], y_test=y[1:])
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.load("cifar10")
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.int64)
    np.testing.assert_allclose(data.X, images / 255, rtol=1e-6)
    np.testing.assert_allclose(data.X_test, images[1:] / 255, rtol=1e-6)
    np.testing.assert_array_equal(data.y_test, [9, 3])


def test_cifar10_from_its_home_is_the_first_images_of_each_class_with_the_channels_last(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    planes, y = random.integers(0, 256, (12, 3, 32, 32)), np.array([1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0])

    def fetch_openml(name, **options):
        assert (name, options["version"]) == ("CIFAR_10", 1)
        return planes.reshape(12, -1).astype(float), y.astype(str)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(datasets, "CIFAR10_TRAINING_IMAGES", 8)
    monkeypatch.setattr(datasets, "CIFAR10_IMAGES_A_CLASS", (2, 1))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.load("cifar10")
    np.testing.assert_array_equal(data.y, [1, 0, 0, 1])
    np.testing.assert_array_equal(data.y_test, [1, 0])
    np.testing.assert_allclose(data.X[3, :, :, 2], planes[3, 2] / 255, rtol=1e-6)
    np.testing.assert_allclose(data.X_test[1, :, :, 0], planes[10, 0] / 255, rtol=1e-6)


def test_uci_sets_come_with_their_splits(tmp_path, monkeypatch):
    X, y, test = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6, dtype=np.float32), [[5], [0]]
    np.savez(tmp_path / "uci_regression.npz", yacht_X=X, yacht_y=y, yacht_test_idx=np.array(test, np.int32))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.uci_regression("yacht")
    assert data.X.dtype == data.y.dtype == np.float64
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.test_indices, test)
    with pytest.raises(ValueError, match=r"name='protein' .*'boston', 'concrete'"):
        datasets.uci_regression("protein")


def test_uci_sets_are_fetched_once_with_the_columns_that_their_home_names(tmp_path, monkeypatch):
    files = {"data": [[1.0, 9.0, 3.0], [4.0, 9.0, 6.0]], "index_features": [0.0, 2.0], "index_target": 1.0}
    files |= {f"index_test_{i}": [i % 2] for i in range(20)}
    asked = []

    def loadtxt(address, dtype=float):
        asked.append(address)
        return np.array(files[address.rpartition("/")[2].removesuffix(".txt")], dtype)

    monkeypatch.setattr(np, "loadtxt", loadtxt)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    for _ in range(2):
        data = datasets.uci_regression("wine_red")
        np.testing.assert_array_equal(data.X, [[1, 3], [4, 6]])
        np.testing.assert_array_equal(data.y, [9, 9])
        assert data.test_indices.shape == (20, 1)
        assert data.test_indices[:2].tolist() == [[0], [1]]
    assert len(asked) == len(set(asked)) == 23
    assert all("/wine-quality-red/data/" in address for address in asked)


def test_uci_sets_without_a_network(tmp_path, monkeypatch):
    def loadtxt(address, dtype=float):
        raise OSError("no route")

    monkeypatch.setattr(np, "loadtxt", loadtxt)
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    message = r"'energy' is not available: MERCER_DATA=.* has no uci_energy.npz or uci_regression.npz, .*no route"
    with pytest.raises(ConnectionError, match=message):
        datasets.uci_regression("energy")
    assert not list(tmp_path.iterdir())


def test_faces_and_objects_come_from_files_alone(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (3, 48, 42)).astype(np.uint8)
    np.savez(tmp_path / "yaleb_48x42.npz", X=images, y=np.array([0, 1, 1], np.uint8))
    np.savez(tmp_path / "coil20_32x32.npz", X=images[:, :32, :32] / 255.0, y=np.array([0, 1, 1]))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    faces, objects = datasets.load("yaleb"), datasets.load("coil20")
    np.testing.assert_allclose(faces.X, images / 255, rtol=1e-6)
    np.testing.assert_allclose(objects.X, images[:, :32, :32] / 255, rtol=1e-6)
    assert faces.X.dtype == objects.X.dtype == np.float32
    assert faces.X_test is None
    monkeypatch.delenv("MERCER_DATA")
    with pytest.raises(ConnectionError, match=r"'yaleb' is not available: .*put yaleb_48x42.npz into a folder"):
        datasets.load("yaleb")
