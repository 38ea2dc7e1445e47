"""Saving and loading: every value comes back bit by bit, every damage is noticed, nothing foreign is run."""

import ast
import dataclasses
import hashlib
import json
import os
import stat
import struct
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.preprocessing import StandardScaler

import mercer
import mercer.io
from mercer import Mahalanobis, Nystrom
from mercer.exceptions import InvalidParameterError, ModelFileError
from mercer.io import classes, container
from mercer.io.decoding import Source, decode
from mercer.io.encoding import Parts, encode
from mercer.io.vocabulary import BIT_GENERATORS, MAX_DEPTH, NUMPY_TYPES, TENSOR_TYPES
from mercer.kernels import Custom, Gaussian, Laplace, Linear, Polynomial
from mercer.kernels.base import GradientTerm
from tests.examples_of import KERNELS, METRICS, QUICK, numbers, rational


def same(a, b):
    """Whether two values are of one type and equal bit by bit, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, torch.Tensor):
        bits = [t.resolve_conj().resolve_neg().reshape(-1).view(torch.uint8).tolist() for t in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and bits[0] == bits[1]
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return bool(a == b)


def there_and_back(model, folder, **objects):
    path = folder / "model.mercer"
    mercer.save(model, path)
    return mercer.load(path, objects or None)


def value_there_and_back(value, folder):
    """Send a value along as a parameter and as a fitted attribute; return the latter."""
    model = Mahalanobis(value)
    model.extra_ = value
    loaded = there_and_back(model, folder)
    assert same(loaded.factor, loaded.extra_)
    return loaded.extra_


@pytest.fixture
def small_file(tmp_path):
    path = tmp_path / "small.mercer"
    mercer.save(Mahalanobis(np.array([1.0, -2.0])), path)
    return path


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


def test_shared_memory_is_saved_and_loaded_arrays_are_their_own(tmp_path):
    model = Mahalanobis(np.arange(4.0))
    model.same_ = model.factor
    model.part_ = model.factor[1:]
    model.tensor_ = torch.from_numpy(model.factor)
    loaded = there_and_back(model, tmp_path)
    loaded.factor[:] = -1.0
    assert loaded.same_.tolist() == loaded.tensor_.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert loaded.part_.tolist() == [1.0, 2.0, 3.0]


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
    objects = {"function": rational} if name == "custom" else {}
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
    assert (document["format"], document["version"]) == ("mercer-model", 1)
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
    values = [StandardScaler().fit(numbers(9, 2)), term, Outcome(0.5, [1, 2])]
    for value in values:
        with pytest.raises(TypeError, match=rf"extra_ is a .*{type(value).__name__}, which cannot be saved"):
            value_there_and_back_as_attribute(value, tmp_path)
    monkeypatch.setitem(classes.SCIKIT_LEARN, "StandardScaler", "sklearn.preprocessing:StandardScaler")
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


# ---- what the user must hand back, and what cannot be saved ------------------------------------------------


def test_callables_are_handed_back_by_their_parameter(tmp_path):
    """The fitted kernel holds the same function as the parameter: one name serves both."""
    path, X = tmp_path / "model", numbers(12, 2)
    model = Nystrom(kernel=2.0 * Custom(rational), n_landmarks=5, random_state=0).fit(X)
    mercer.save(model, path)
    loaded = mercer.load(path, {"kernel__kernel__function": rational})
    assert loaded.kernel.kernel.function is loaded.kernel_.kernel.function is rational
    assert same(loaded.transform(X), model.transform(X))


def test_bare_function_module_and_lists(tmp_path):
    path, network = tmp_path / "model", torch.nn.Linear(2, 2)
    mercer.save(Nystrom(kernel=rational, n_landmarks=5).fit(numbers(12, 2)), path)
    assert mercer.load(path, {"kernel": rational}).kernel_.function is rational
    mercer.save(Custom(network), path)
    assert mercer.load(path, {"function": network}).function is network
    mercer.save(Polynomial(degree=[rational, {"b": network}, rational]), path)
    loaded = mercer.load(path, {"degree__0": rational, "degree__1__b": network})
    assert loaded.degree == [rational, {"b": network}, rational]


def test_missing_and_unknown_objects_are_listed(tmp_path):
    path = tmp_path / "model"
    mercer.save(Custom(rational) + Custom(len), path)
    needed = r"'left__function' \(function rational\), 'right__function' \(builtin_function_or_method len\)\."
    right = {"left__function": rational, "right__function": len}
    for objects in (None, {}, {"left__function": rational}, {**right, "x": max}):
        with pytest.raises(InvalidParameterError, match="asks for exactly " + needed):
            mercer.load(path, objects)
    with pytest.raises(InvalidParameterError, match=r"objects\['left__function'\]=3 .* a callable"):
        mercer.load(path, {**right, "left__function": 3})
    with pytest.raises(InvalidParameterError, match="None or a dictionary"):
        mercer.load(path, [rational])
    mercer.save(Linear(), path)
    with pytest.raises(InvalidParameterError, match=r"\['kernel__function'\], but the file asks for none"):
        mercer.load(path, {"kernel__function": rational})


class OwnKernel(Gaussian):
    """A user's kernel; callable, as all kernels are, and yet no function to hand back."""


def containing_itself():
    items = []
    items.append(items)
    return items


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


UNSAVABLE = {
    "set": ({1}, r"factor is a builtins\.set"),
    "deep_inside": ([0, {"a": (1, object())}], r"factor\.1\.a\.1 is a builtins\.object"),
    "bytes_array": (np.array([b"x"]), r"factor is a numpy\.ndarray.*dtype \|S1"),
    "records": (np.zeros(2, dtype="f8,i4"), r"factor is a numpy\.ndarray"),
    "long_double": (np.longdouble(1.0), r"factor is a numpy\.longdouble"),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), r"factor is a numpy\.ma"),
    "complex128": (torch.zeros(1, dtype=torch.complex128), r"factor is a torch\.Tensor.*complex128"),
    "sparse": (torch.eye(2).to_sparse(), r"factor is a torch\.Tensor.*torch\.sparse_coo"),
    "meta": (torch.zeros(2, device="meta"), r"factor is a torch\.Tensor.*meta"),
    "key": ({frozenset([1]): 2}, r"factor\.frozenset\(\{1\}\) is a builtins\.frozenset.*keys"),
    "itself": (containing_itself(), rf"factor\.0\.0\.\.\. is nested deeper than {MAX_DEPTH} levels"),
    "user_class": (OwnKernel(), r"factor is a test_io\.OwnKernel.*Mercer itself defines"),
    "same_name": ({"a__b": len, "a": {"b": max}}, r"factor\.a\.b is a .*'factor__a__b', and so would"),
}


@pytest.mark.parametrize("name", UNSAVABLE)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(name, tmp_path):
    value, message = UNSAVABLE[name]
    with pytest.raises(TypeError, match=message):
        mercer.save(Mahalanobis(value), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_callable_that_fit_made_cannot_be_saved(tmp_path):
    model = Mahalanobis()
    model.link_ = rational
    with pytest.raises(TypeError, match=r"link_ is a builtins\.function.*parameters only"):
        mercer.save(model, tmp_path / "model")


def test_attribute_that_hides_a_method_cannot_be_saved(tmp_path):
    model = Mahalanobis()
    vars(model)["distance"] = 3
    with pytest.raises(TypeError, match=r"distance is a builtins\.int.*hides"):
        mercer.save(model, tmp_path / "model")


@pytest.mark.parametrize("model", [OwnKernel(), StandardScaler(), 42, [Gaussian()], Gaussian, rational, None])
def test_only_models_of_mercer_are_saved(model, tmp_path):
    with pytest.raises(TypeError, match="model is a .*, which cannot be saved"):
        mercer.save(model, tmp_path / "model")


def test_class_of_the_same_name_is_not_taken_for_ours(tmp_path):
    impostor = type("Gaussian", (Gaussian,), {})
    with pytest.raises(TypeError, match=r"\.Gaussian, which cannot be saved"):
        mercer.save(impostor(), tmp_path / "model")


def test_generators_that_cannot_be_made_again(monkeypatch, tmp_path):
    legacy = np.random.RandomState(0)._bit_generator
    with pytest.raises(TypeError, match=r"factor is a .*Generator.*seeds are a NoneType"):
        mercer.save(Mahalanobis(np.random.Generator(legacy)), tmp_path / "model")
    monkeypatch.delitem(BIT_GENERATORS, "SFC64")
    for random in (np.random.Generator, np.random.RandomState):
        with pytest.raises(TypeError, match=r"factor is a .*bit generator must be one of MT19937, PCG64,"):
            mercer.save(Mahalanobis(random(np.random.SFC64(0))), tmp_path / "model")


def test_too_wide_strings(monkeypatch, tmp_path):
    monkeypatch.setattr("mercer.io.encoding.MAX_TEXT", 12)
    mercer.save(Mahalanobis(np.array(["abc"] * 4)), tmp_path / "model")
    with pytest.raises(TypeError, match="at most 12 characters"):
        mercer.save(Mahalanobis(np.array(["abcd"] * 4)), tmp_path / "model")


def test_too_much_text(monkeypatch, tmp_path):
    monkeypatch.setattr(container, "MAX_HEADER", 1000)
    mercer.save(Mahalanobis([0] * 10), tmp_path / "model")
    with pytest.raises(ValueError, match="bytes of text .* at most 1000"):
        mercer.save(Mahalanobis([0] * 1000), tmp_path / "model")


def test_nesting_as_deep_as_allowed_comes_back(tmp_path):
    # The parameter is one level, its innermost number another.
    assert same(there_and_back(Mahalanobis(nested(MAX_DEPTH - 1)), tmp_path).factor, nested(MAX_DEPTH - 1))
    with pytest.raises(TypeError, match="nested deeper"):
        mercer.save(Mahalanobis(nested(MAX_DEPTH)), tmp_path / "model")
    kernel = Linear()
    for _ in range(MAX_DEPTH - 2):
        kernel = kernel + Linear()
    assert there_and_back(kernel, tmp_path) == kernel


# ---- damage ------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(small_file):
    data = small_file.read_bytes()
    for i in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[i] ^= 1 << bit
            small_file.write_bytes(damaged)
            with pytest.raises(ModelFileError, match="damaged"):
                mercer.load(small_file)
    small_file.write_bytes(data)
    assert mercer.load(small_file).factor.tolist() == [1.0, -2.0]


def test_every_truncation_and_extension_is_noticed(small_file):
    data = small_file.read_bytes()
    for damaged in [*(data[:length] for length in range(len(data))), data + b"\0", data + data]:
        small_file.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="damaged"):
            mercer.load(small_file)


FOREIGN = {
    "empty": b"",
    "text": b"kernel: gaussian\nbandwidth: 3\n" * 10,
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200),
    "zip": b"PK\x03\x04" + bytes(100),
    "zeros": bytes(500),
    "long_header": b"\xff" * 8 + b"{}",
    "safetensors": safetensors.serialize({}, {"format": "pt"}),
    "safetensors_with_digest": safetensors.serialize({}, {"sha256": "0" * 64}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ModelFileError, match="foreign is (not a Mercer model file|damaged)"):
        mercer.load(path)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder"):
        mercer.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        mercer.load(tmp_path / "missing")
    with pytest.raises(InvalidParameterError, match="path=3"):
        mercer.load(3)
    with pytest.raises(InvalidParameterError, match="path=None"):
        mercer.save(Linear(), None)
    with pytest.raises(FileNotFoundError, match="create the folder '.*no'"):
        mercer.save(Linear(), tmp_path / "no" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        mercer.save(Linear(), tmp_path)


# ---- crafted files: the digest is right, the content is not ------------------------------------------------


def sealed(header, body=b"", length=None):
    """Return a file with that header and a right digest, written without Mercer."""
    text = json.dumps(header, separators=(",", ":")).encode()
    data = (len(text) if length is None else length).to_bytes(8, "little") + text + body
    return data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1)


def with_document(document, tensors=None, body=b"", length=None):
    text = document if isinstance(document, str) else json.dumps(document)
    return sealed({"__metadata__": {"sha256": "0" * 64, "document": text}, **(tensors or {})}, body, length)


def with_model(model, **changes):
    document = {"format": "mercer-model", "version": 1, "mercer": "0.1.0", "objects": {}, "model": model}
    return {**document, **changes}


def metric(factor=None, name="mercer.Mahalanobis", state=None):
    return {"object": {"class": name, "params": {"factor": factor}, "state": state or {}}}


TENSOR = {"0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
ARRAY = {"array": {"name": "0", "order": "C", "dtype": "float64"}}


def load_bytes(data, folder):
    path = folder / "crafted"
    path.write_bytes(data)
    return mercer.load(path)


def test_file_written_by_hand_is_read(tmp_path):
    """The crafted files below fail for what is wrong in them, not for the way they are made."""
    model = metric(ARRAY, state={"fitted_": 3})
    loaded = load_bytes(with_document(with_model(model), TENSOR, struct.pack("<dd", 1.5, -2.0)), tmp_path)
    assert same(loaded.factor, np.array([1.5, -2.0]))
    assert loaded.fitted_ == 3


CLASSES = ["os.system", "builtins.eval", "mercer.load", "mercer.linalg", "mercer.io", "mercer.kernels.Kernel"]
CLASSES += ["mercer.kernels.check_kernel", "mercer.kernels.GradientTerm", "mercer.exceptions.ModelFileError"]
CLASSES += ["mercer.kernels.radial.CentredRows", "sklearn.preprocessing.StandardScaler", "Mahalanobis", ""]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("tag", ["object", "result"])
def test_classes_that_are_not_listed_are_refused(name, tag, tmp_path):
    crafted = {tag: {"class": name, "params": {}, "state": {}, "fields": {}}}
    for model in (crafted, metric(crafted)):
        with pytest.raises(ModelFileError, match="crafted asks for .*, which is not"):
            load_bytes(with_document(with_model(model)), tmp_path)


def test_no_module_is_imported_for_a_class_that_is_not_listed(tmp_path):
    (tmp_path / "trap_of_test_io.py").write_text("raise SystemExit('imported')")
    sys.path.insert(0, str(tmp_path))
    try:
        for name in ("trap_of_test_io.Trap", "trap_of_test_io:Trap", "mercer.kernels.trap_of_test_io"):
            with pytest.raises(ModelFileError, match="not one that may be loaded"):
                load_bytes(with_document(with_model(metric(name=name))), tmp_path)
    finally:
        sys.path.remove(str(tmp_path))


METHODS = ["distance", "kind", "get_params", "factor"]


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__reduce__", "__x", *METHODS, "a b", "", "a.b"])
def test_attributes_that_are_not_data_are_refused(name, tmp_path):
    with pytest.raises(ModelFileError, match="not allowed as an attribute"):
        load_bytes(with_document(with_model(metric(state={name: 3}))), tmp_path)


BAD_VALUES = {
    "unknown_kind": {"pickle": "gASVAAAA"},
    "two_kinds": {"tuple": [], "dict": []},
    "no_kind": {},
    "int": {"int": "zz"},
    "float": {"float": "00"},
    "unhashable_key": {"dict": [[[1], 2]]},
    "half_an_entry": {"dict": [[1]]},
    "missing_tensor": {"array": {"name": "9", "order": "C", "dtype": "float64"}},
    "other_dtype": {"array": {"name": "0", "order": "C", "dtype": "int64"}},
    "object_dtype": {"array": {"name": "0", "order": "C", "dtype": "object"}},
    "date_in_floats": {"array": {"name": "0", "order": "C", "dtype": "datetime64[s]"}},
    "odd_dtype": {"scalar": ["f8,(9,9)f8", "00"]},
    "tensor_twice": [ARRAY, ARRAY],
    "scalar_too_long": {"scalar": ["float32", "00" * 8]},
    "scalar_text": {"scalar": ["object", "00" * 8]},
    "wrong_count": {"objects": {"shape": [2, 2], "items": [1]}},
    "negative_shape": {"objects": {"shape": [-1, -1], "items": [1]}},
    "wide_text": {"text": {"shape": [1], "width": 2**28 + 1, "items": ["a"]}},
    "narrow_text": {"text": {"shape": [1], "width": 1, "items": ["abc"]}},
    "text_of_numbers": {"text": {"shape": [1], "width": 1, "items": [1]}},
    "type": {"type": "os.system"},
    "dtype": {"dtype": "object"},
    "device": {"device": "nowhere"},
    "given": {"given": "kernel__function"},
    "result_of_no_fields": {"result": {"class": "mercer.Mahalanobis", "fields": {}}},
    "unknown_parameter": {"object": {"class": "mercer.Mahalanobis", "params": {"power": 2}, "state": {}}},
    "missing_parameter": {"object": {"class": "mercer.kernels.Custom", "params": {}, "state": {}}},
    "no_state": {"object": {"class": "mercer.Mahalanobis", "params": {}}},
    "no_bit_generator": {"RandomState": {"dict": [["bit_generator", "os"], ["state", {"dict": []}]]}},
}


# Those for which there is a plain word; Python's own does for the others.
WORDS = {
    "unknown_kind": "unknown kind 'pickle'",
    "other_dtype": "type int64 is stored as float64",
    "object_dtype": "no arrays of type 'object'",
    "date_in_floats": "is stored as float64",
    "wide_text": "width 268435457",
    "narrow_text": "width 1",
    "unknown_parameter": "has power for Mahalanobis, which has no such parameter",
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_values_that_make_no_sense_are_refused(name, tmp_path):
    data = with_document(with_model(metric(BAD_VALUES[name])), TENSOR, bytes(16))
    with pytest.raises(ModelFileError, match=f"crafted .*{WORDS.get(name, '')}"):
        load_bytes(data, tmp_path)


def replaced(tree, changes):
    """Return nested dicts with the values of some keys changed."""
    return {
        key: replaced(item, changes) if isinstance(item, dict) else changes.get(key, item)
        for key, item in tree.items()
    }


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("MT19937", {"pos": 10**6}),
        ("MT19937", {"pos": -1}),
        ("Philox", {"buffer_pos": -9}),
        ("Philox", {"buffer_pos": 5}),
        ("Philox", {"buffer_pos": 1.5}),
    ],
)
@pytest.mark.parametrize("legacy", [True, False])
def test_generators_that_would_read_outside_their_buffer_are_refused(kind, place, legacy):
    bits = getattr(np.random, kind)(0)
    parts = Parts()
    state = encode(replaced(np.random.RandomState(bits).get_state(legacy=False), place), (), parts)
    seeds = encode(bits.seed_seq.state, (), parts)
    tensors = {name: torch.from_numpy(tensor.memory) for name, tensor in parts.tensors.items()}
    crafted = {"RandomState": state} if legacy else {"Generator": [state, seeds]}
    with pytest.raises(ModelFileError, match="at place"):
        decode(crafted, Source(tensors, {}))


def test_generator_with_too_many_seeds_is_refused():
    bits = np.random.PCG64(0)
    crafted = {"Generator": [encode(part, (), Parts()) for part in (bits.state, bits.seed_seq.state)]}
    assert isinstance(decode(crafted, Source({}, {})), np.random.Generator)
    crafted["Generator"][1] = encode({**bits.seed_seq.state, "pool_size": 2000}, (), Parts())
    with pytest.raises(ModelFileError, match="a pool of 2000 seeds"):
        decode(crafted, Source({}, {}))


DOCUMENTS = {
    "other_format": (with_model(metric(), format="other"), "is not a Mercer model file"),
    "no_format": ({}, "is not a Mercer model file"),
    "a_list": ([], "is not a Mercer model file"),
    "newer": (with_model(metric(), version=2, mercer="9.1"), r"version 2, written by mercer 9\.1.*upgrade"),
    "version_zero": (with_model(metric(), version=0), "malformed"),
    "version_text": (with_model(metric(), version="1"), "malformed"),
    "version_true": (with_model(metric(), version=True), "malformed"),
    "no_objects": (with_model(metric(), objects=[]), "malformed"),
    "no_model": ({"format": "mercer-model", "version": 1, "mercer": "0", "objects": {}}, "malformed"),
    "not_a_model": (with_model([1, 2]), "holds a list, not a model"),
    "nan": (json.dumps(with_model(metric(float("nan")))), "NaN is not JSON"),
    "no_json": ("{", "malformed"),
    "too_deep": (with_model(metric(nested(MAX_DEPTH))), f"nested deeper than {MAX_DEPTH} levels"),
    "far_too_deep": ("[" * 100_000, "malformed .RecursionError"),
    "saved_by": (with_model(metric({"pickle": 1}), mercer="7.7"), r"It was saved by mercer 7\.7, this is"),
    "saved_by_nobody": ({"format": "mercer-model", "version": 1, "objects": {}, "model": {}}, "malformed"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_cannot_be_read(name, tmp_path):
    document, message = DOCUMENTS[name]
    with pytest.raises(ModelFileError, match=message):
        load_bytes(with_document(document), tmp_path)


GOOD = with_model(metric(ARRAY))
HEADERS = {
    "huge_length": with_document(GOOD, TENSOR, bytes(16), length=2**63),
    "length_beyond_the_file": with_document(GOOD, TENSOR, bytes(16), length=10_000),
    "short_length": with_document(GOOD, TENSOR, bytes(16), length=100),
    "offset_beyond_the_file": with_document(GOOD, {"0": {**TENSOR["0"], "data_offsets": [8, 24]}}, bytes(16)),
    "negative_offset": with_document(GOOD, {"0": {**TENSOR["0"], "data_offsets": [-16, 0]}}, bytes(16)),
    "shape_too_large": with_document(GOOD, {"0": {**TENSOR["0"], "shape": [2**62, 2**62]}}, bytes(16)),
    "shape_and_size_differ": with_document(GOOD, {"0": {**TENSOR["0"], "shape": [3]}}, bytes(16)),
    "unknown_dtype": with_document(GOOD, {"0": {**TENSOR["0"], "dtype": "PY"}}, bytes(16)),
    "tensor_is_text": with_document(GOOD, {"0": "x"}, bytes(16)),
    "no_document": sealed({"__metadata__": {"sha256": "0" * 64}}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_do_not_fit_the_file(name, tmp_path):
    with pytest.raises(ModelFileError, match="crafted is (malformed|not a Mercer model file)"):
        load_bytes(HEADERS[name], tmp_path)


def test_module_neither_unpickles_nor_evaluates():
    forbidden_modules = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "skops"}
    forbidden_calls = {"eval", "exec", "compile", "__import__"}
    files = sorted(Path(mercer.io.__file__).parent.glob("*.py"))
    assert len(files) > 1
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not forbidden_modules & {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.module.split(".")[0] not in forbidden_modules
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in {*forbidden_calls, "torch.load", "np.load"}


# ---- writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("exists", [True, False])
def test_failed_save_leaves_everything_as_it_was(name, error, exists, monkeypatch, tmp_path):
    path = tmp_path / "model"
    if exists:
        mercer.save(Gaussian(1.0), path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def fail(*args):
        raise error

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(type(error)):
        mercer.save(Gaussian(2.0), path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    monkeypatch.undo()
    mercer.save(Gaussian(2.0), path)
    assert mercer.load(path) == Gaussian(2.0)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_failed_write_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def pieces():
        yield b"new"
        assert len(list(tmp_path.iterdir())) == 2  # the temporary file is there, beside the old one
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        container.write_atomically(path, pieces())
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"old"


def test_content_is_on_the_disk_before_it_gets_its_name(monkeypatch, tmp_path):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *args: (calls.append("fsync"), fsync(*args)))
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("replace"), replace(*args)))
    mercer.save(Linear(), tmp_path / "model")
    assert calls[:2] == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
def test_permissions_are_those_of_open(tmp_path):
    path = tmp_path / "model"
    before = os.umask(0o027)
    try:
        mercer.save(Linear(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        mercer.save(Linear(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_links_are_followed_and_names_may_be_long(tmp_path):
    target, link = tmp_path / ("m" * 255), tmp_path / "link"
    link.symlink_to(target)
    mercer.save(Gaussian(3.0), link)
    assert link.is_symlink()
    assert mercer.load(target) == mercer.load(str(link)) == Gaussian(3.0)
