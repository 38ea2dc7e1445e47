"""Saving and loading: every value and every model comes back bit by bit."""

import dataclasses
import hashlib
import json
import struct

import numpy as np
import pandas as pd
import pytest
import safetensors
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler

import mercer
import mercer.io
from mercer import Mahalanobis, Nystrom
from mercer.exceptions import ModelFileError
from mercer.io import classes
from mercer.io.vocabulary import NUMPY_TYPES, TENSOR_TYPES
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.kernels.base import GradientTerm
from tests.examples_of import KERNELS, METRICS, QUICK, columns_network, numbers, rational
from tests.model_files import (
    load_bytes,
    metric,
    same,
    there_and_back,
    value_there_and_back,
    with_document,
    with_model,
)

# ---- values ------------------------------------------------------------------------------------------------

VALUES = {
    "none": None,
    "bool": True,
    "int": -3,
    "large_int": 2**53 + 1,
    "huge_int": -(10**5000),
    "float": 0.1,
    "negative_zero": -0.0,
    "infinite": float("-inf"),
    "nan_with_payload": struct.unpack("d", struct.pack("Q", 0xFFF8000000000123))[0],
    "text": 'é "quoted" \\ \n \0 \U0001f600 \ud800 "sha256":"' + "0" * 64,
    "list": [1, [2.0, []], "x"],
    "tuple": (1, (2, ()), [3]),
    "dict": {"b": 1, "a": 2, 3: "three", None: 0, (1, "x"): 2.5, True: 4, np.int64(7): 1, 1.5: {}},
    "slice": slice(None, 5, -2),
    "type": [int, float, bool, str, np.float32, np.bool_, np.uint8],
    "dtype": [np.dtype("float16"), np.dtype("datetime64[ms]")],
    "torch_dtype": [torch.bfloat16, torch.float64],
    "device": torch.device("cuda", 1),
    "scalars": [np.float32(0.1), np.float64("nan"), np.int8(-4), np.uint64(2**64 - 1), np.True_],
    "text_scalar": np.str_("é"),
    "times": [np.datetime64("2020-02-29T12:00", "m"), np.timedelta64(3, "D"), np.datetime64("NaT")],
    "zero_dimensional": np.array(2.5, dtype=np.float32),
    "empty": np.zeros((3, 0, 2), dtype=np.int16),
    "strided": np.arange(24).reshape(4, 6)[::-2, 1::2],
    "read_only": np.broadcast_to(np.float32(2.0), (2, 3)),
    "dates": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "strided_dates": np.arange(6).astype("timedelta64[25us]").reshape(2, 3)[:, ::2],
    "sparse_rows": sparse.csr_array([[0.0, 2.5], [0.0, 0.0], [np.nan, 0.0]]),
    "sparse_columns": sparse.csc_array(np.array([[0, 2, 3]], dtype=np.int8)),
    "empty_sparse": sparse.csr_array((2, 0), dtype=np.float32),
    "strings": np.array([["a", "longer"], ["", "é\ud800"]]),
    "wide_strings": np.array(["a"], dtype="U40"),
    "no_strings": np.array([], dtype="U3"),
    "objects": np.array(["a", None, 1, 2.5, float("nan")], dtype=object),
    "objects_in_rows": np.array([["a", "b"], ["c", "d"]], dtype=object),
    "conjugate": torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj(),
    "negative_view": torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj().imag,
    "sliced_tensor": torch.arange(24.0).reshape(4, 6)[1::2, ::3],
    "scalar_tensor": torch.tensor(3, dtype=torch.int32),
    "empty_tensor": torch.zeros(0, 4, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_exactly(name, tmp_path):
    assert same(value_there_and_back(VALUES[name], tmp_path), VALUES[name])


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_arrays_of_every_type(name, tmp_path):
    array = np.arange(-3, 3).reshape(2, 3).astype(name)
    assert same(value_there_and_back(array, tmp_path), array)
    assert same(value_there_and_back(array[1, 2], tmp_path), array[1, 2])


@pytest.mark.parametrize("name", TENSOR_TYPES)
def test_tensors_of_every_type(name, tmp_path):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    assert same(value_there_and_back(tensor, tmp_path), tensor)


def test_other_byte_order_comes_back_native(tmp_path):
    for kind in (">f8", ">i2", ">M8[s]", ">U3"):
        array = np.arange(3).astype(kind)
        loaded = value_there_and_back(array, tmp_path)
        assert loaded.dtype.isnative
        assert (loaded == array).all()


def test_order_in_memory_is_kept(tmp_path):
    """Products depend on it in the last digits, and so would the results of a loaded model."""
    matrix = numbers(5, 4)
    column = np.lib.stride_tricks.as_strided(numbers(7), (7, 1), (8, 56))
    for array in (matrix, matrix.T, np.asfortranarray(numbers(2, 3, 4)), column, np.eye(3, dtype=bool).T):
        assert value_there_and_back(array, tmp_path).strides == array.strides
        assert same(value_there_and_back(array, tmp_path), array)
    tensor = torch.from_numpy(matrix).to(torch.bfloat16).T
    assert value_there_and_back(tensor, tmp_path).stride() == tensor.stride()
    dates = np.arange(6).astype("M8[s]").reshape(2, 3).T
    assert value_there_and_back(dates, tmp_path).strides == dates.strides


def test_memory_map_and_parameter_come_back_as_plain_arrays(tmp_path):
    rows = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(2, 3))
    rows[:] = 7.0
    assert same(value_there_and_back(rows, tmp_path), np.full((2, 3), 7.0, dtype=np.float32))
    weight = torch.nn.Parameter(torch.ones(2))
    assert same(value_there_and_back(weight, tmp_path), torch.ones(2))


def test_an_array_that_is_shared_is_saved_once_and_shared_again(tmp_path):
    model = Mahalanobis(np.arange(4.0))
    model.same_ = model.factor
    model.part_ = model.factor[1:]
    model.turned_ = [np.ones((3, 2)), np.ones((3, 2)).T]
    loaded = there_and_back(model, tmp_path)
    assert np.shares_memory(loaded.factor, loaded.same_)
    loaded.factor[:] = -1.0
    assert loaded.same_.tolist() == [-1.0] * 4
    assert loaded.part_.tolist() == [1.0, 2.0, 3.0]
    assert [each.shape for each in loaded.turned_] == [(3, 2), (2, 3)]


def test_a_large_array_that_many_parts_share_takes_the_space_of_one(tmp_path):
    model = Mahalanobis(np.arange(4.0))
    rows = np.random.default_rng(0).normal(size=(1000, 10))
    model.parts_ = [rows] * 20
    mercer.save(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 1.2 * rows.nbytes
    assert all(np.array_equal(part, rows) for part in mercer.load(tmp_path / "model").parts_)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(st.characters(codec=None), max_size=5)
    | st.floats(width=32).map(np.float32)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
)
ARRAYS = arrays(
    st.sampled_from([np.float64, np.float16, np.int8, np.uint32, np.bool_, "U3", "M8[ns]"]),
    array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3),
)
NESTED = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(SCALARS, inner, max_size=3)
    ),
    max_leaves=10,
)


@QUICK
@given(value=NESTED)
def test_nested_structures_come_back_exactly(value, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    assert same(value_there_and_back(value, folder), value)


def test_random_state_goes_on_where_it_was(tmp_path):
    for bits in (None, np.random.PCG64(3)):
        random = np.random.RandomState(5) if bits is None else np.random.RandomState(bits)
        random.standard_normal(3)  # leaves one number of a pair behind
        loaded = there_and_back(Mahalanobis(random), tmp_path).factor
        assert same(loaded.standard_normal(5), random.standard_normal(5))
        assert same(loaded.randint(1000, size=700), random.randint(1000, size=700))


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generator_goes_on_where_it_was(kind, tmp_path):
    random = np.random.Generator(getattr(np.random, kind)([2, 10**40]))
    random.integers(10, size=3, dtype=np.uint32)
    random.spawn(2)
    loaded = there_and_back(Mahalanobis(random), tmp_path).factor
    assert same(loaded.random(700), random.random(700))
    assert same(loaded.integers(10, size=9, dtype=np.uint32), random.integers(10, size=9, dtype=np.uint32))
    assert same(loaded.spawn(1)[0].random(3), random.spawn(1)[0].random(3))


# ---- models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_come_back_equal(name, metric, tmp_path):
    kernel = KERNELS[name].with_metric(METRICS[metric](3))
    objects = {"custom": {"function": rational}, "tangent": {"network": columns_network()}}.get(name, {})
    loaded = there_and_back(kernel, tmp_path, **objects)
    X, Z = numbers(6, 3), numbers(4, 3, seed=1)
    assert loaded == kernel
    assert loaded is not kernel
    assert same(loaded.matrix(X, Z), kernel.matrix(X, Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(metric=numbers(3) ** 2) + 0.5 * Linear(), "matern32"])
def test_fitted_nystrom_gives_the_same_bits(kernel, dtype, tmp_path):
    X = pd.DataFrame(numbers(30, 3).astype(dtype), columns=["a", "b", "ç"])
    random = np.random.RandomState(0)
    model = Nystrom(kernel=kernel, n_landmarks=12, n_components=5, random_state=random).fit(X)
    loaded = there_and_back(model, tmp_path)
    assert same(loaded.transform(X), model.transform(X))
    assert same(loaded.feature_names_in_, model.feature_names_in_)
    assert vars(loaded).keys() == vars(model).keys()
    assert loaded.kernel_ == model.kernel_


def test_unfitted_model_and_its_settings(tmp_path):
    model = Nystrom(n_landmarks=7, landmarks=np.eye(2)).set_output(transform="pandas")
    loaded = there_and_back(model, tmp_path)
    assert not hasattr(loaded, "landmarks_")
    assert (loaded.n_landmarks, loaded.landmarks.tolist()) == (7, [[1.0, 0.0], [0.0, 1.0]])
    assert isinstance(loaded.fit_transform(numbers(5, 2)), pd.DataFrame)


def test_callbacks_stay_behind(tmp_path):
    model = Mahalanobis()
    model._skl_callbacks = [object()]
    model._kept = 3
    assert vars(there_and_back(model, tmp_path)) == {"factor": None, "_kept": 3}


def test_same_model_makes_the_same_file_and_safetensors_reads_it(tmp_path):
    model = Gaussian(bandwidth=1.0, metric=np.array([1.0, 2.0]))
    model.small_, model.wide_ = np.ones(3, dtype=np.int8), torch.ones(2, dtype=torch.float64)
    for name in ("a", "b"):
        mercer.save(model, str(tmp_path / name))
    data = (tmp_path / "a").read_bytes()
    assert data == (tmp_path / "b").read_bytes()
    with safetensors.safe_open(tmp_path / "a", "np") as file:
        digest = file.metadata()["sha256"]
        document = json.loads(file.metadata()["document"])
        assert sorted(file.get_tensor(name).tolist() for name in file.keys()) == [[1, 1], [1, 1, 1], [1, 2]]  # noqa: SIM118
    assert digest == hashlib.sha256(data.replace(digest.encode(), b"0" * 64)).hexdigest()
    assert (document["format"], document["version"]) == ("mercer-model", mercer.io.FORMAT_VERSION)
    assert document["mercer"] == mercer.__version__
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    wide = [entry["data_offsets"][0] for entry in header.values() if entry.get("dtype") == "F64"]
    assert len(wide) == 2
    assert all((8 + length + offset) % 8 == 0 for offset in wide)  # aligned for those who map the file


@dataclasses.dataclass
class Outcome:
    score: float
    path: list


def test_registered_classes(monkeypatch, tmp_path):
    """The two tables of classes that are not public estimators: scikit-learn's, and results."""
    term = GradientTerm(Mahalanobis(np.ones(2)), torch.ones(1, 1), None, torch.zeros(1, 2), torch.ones(1, 2))
    values = [MaxAbsScaler().fit(numbers(9, 2)), term, Outcome(0.5, [1, 2])]
    for value in values:
        with pytest.raises(TypeError, match=rf"extra_ is a .*{type(value).__name__}, which cannot be saved"):
            value_there_and_back_as_attribute(value, tmp_path)
    monkeypatch.setitem(classes.SCIKIT_LEARN, "MaxAbsScaler", "sklearn.preprocessing:MaxAbsScaler")
    monkeypatch.setitem(classes.RESULTS, "mercer.GradientTerm", "mercer.kernels.base:GradientTerm")
    monkeypatch.setitem(classes.RESULTS, "mercer.Outcome", f"{__name__}:Outcome")
    scaler, loaded_term, outcome = (value_there_and_back_as_attribute(value, tmp_path) for value in values)
    assert same(scaler.transform(numbers(4, 2, seed=1)), values[0].transform(numbers(4, 2, seed=1)))
    assert type(loaded_term) is GradientTerm
    assert same(tuple(loaded_term), tuple(term))
    assert outcome == Outcome(0.5, [1, 2])
    for fields in ({}, {"score": 1.0}, {"score": 1.0, "path": [], "__class__": 2}):
        crafted = {"result": {"class": "mercer.Outcome", "fields": fields}}
        with pytest.raises(ModelFileError, match="for Outcome, which has others"):
            load_bytes(with_document(with_model(metric(crafted))), tmp_path)
    crafted = {"object": {"class": "mercer.Outcome", "params": {}, "state": {}}}
    with pytest.raises(ModelFileError, match="malformed"):
        load_bytes(with_document(with_model(crafted)), tmp_path)


def value_there_and_back_as_attribute(value, folder):
    model = Mahalanobis()
    model.extra_ = value
    return there_and_back(model, folder).extra_
