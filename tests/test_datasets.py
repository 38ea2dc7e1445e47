"""Data sets: from a folder of files where there is one, else from their homes, else with clear words."""

import numpy as np
import pytest
import sklearn.datasets

from mercer import datasets


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


def test_without_a_file_it_is_fetched(monkeypatch, tmp_path):
    def fetch_covtype(return_X_y):
        return np.ones((3, 54)), np.array([1, 2, 7])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    data = datasets.load("covtype")
    np.testing.assert_array_equal(data.y, [0, 1, 6])
    assert data.X_test is None


def test_without_a_network_the_error_says_what_to_do(monkeypatch):
    def fetch_covtype(return_X_y):
        raise OSError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(ConnectionError, match=r"'covtype' cannot be had: MERCER_DATA is not set, .*no route"):
        datasets.load("covtype")


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match=r"name='cifar' .*'mnist', 'adult', 'covtype'"):
        datasets.load("cifar")
