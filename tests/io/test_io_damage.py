"""Saving and loading: every damage is noticed, and nothing foreign is run."""

import ast
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch
from scipy import sparse

import mercer
import mercer.io
from mercer import Mahalanobis
from mercer.exceptions import InvalidParameterError, ModelFileError
from mercer.io.decoding import Source, decode
from mercer.io.encoding import Parts, encode
from mercer.io.vocabulary import MAX_DEPTH
from mercer.kernels import Linear
from tests.model_files import (
    load_bytes,
    metric,
    nested,
    same,
    sealed,
    with_document,
    with_model,
)


@pytest.fixture
def small_file(tmp_path):
    path = tmp_path / "small.mercer"
    mercer.save(Mahalanobis(np.array([1.0, -2.0])), path)
    return path


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


TENSOR = {"0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
ARRAY = {"array": {"name": "0", "order": "C", "dtype": "float64"}}


def test_file_written_by_hand_is_read(tmp_path):
    """The crafted files below fail for what is wrong in them, not for the way they are made."""
    model = metric(ARRAY, state={"fitted_": 3})
    loaded = load_bytes(with_document(with_model(model), TENSOR, struct.pack("<dd", 1.5, -2.0)), tmp_path)
    assert same(loaded.factor, np.array([1.5, -2.0]))
    assert loaded.fitted_ == 3


CLASSES = ["os.system", "builtins.eval", "mercer.load", "mercer.linalg", "mercer.io", "mercer.kernels.Kernel"]
CLASSES += ["mercer.kernels.check_kernel", "mercer.kernels.GradientTerm", "mercer.exceptions.ModelFileError"]
CLASSES += ["mercer.kernels.radial.CenteredRows", "sklearn.preprocessing.MaxAbsScaler", "Mahalanobis", ""]


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
    "wide_text": "far more memory than a file of its size should",
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
        key: replaced(item, changes) if isinstance(item, dict) else changes.get(key, item) for key, item in tree.items()
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
    "newer": (with_model(metric(), version=99, mercer="9.1"), r"version 99, written by mercer 9\.1.*upgrade"),
    "older": (
        with_model(metric(), version=1, mercer="0.1"),
        r"version 1, written by mercer 0\.1.*fit the model",
    ),
    "the_last": (
        with_model(metric(), version=mercer.io.FORMAT_VERSION - 1, mercer="0.1.0"),
        rf"version {mercer.io.FORMAT_VERSION - 1}, .* reads version {mercer.io.FORMAT_VERSION}: fit the model again",
    ),
    "version_zero": (with_model(metric(), version=0), "malformed"),
    "version_text": (with_model(metric(), version="1"), "malformed"),
    "version_true": (with_model(metric(), version=True), "malformed"),
    "no_objects": (with_model(metric(), objects=[]), "malformed"),
    "no_model": ({**with_model(None), "mercer": "0", "model": {}}, "malformed"),
    "not_a_model": (with_model([1, 2]), "holds a list, not a model"),
    "nan": (json.dumps(with_model(metric(float("nan")))), "NaN is not JSON"),
    "no_json": ("{", "malformed"),
    "too_deep": (with_model(metric(nested(MAX_DEPTH))), f"nested deeper than {MAX_DEPTH} levels"),
    "far_too_deep": ("[" * 100_000, "malformed .RecursionError"),
    "saved_by": (with_model(metric({"pickle": 1}), mercer="7.7"), r"It was saved by mercer 7\.7, this is"),
    "saved_by_nobody": ({key: value for key, value in with_model({}).items() if key != "mercer"}, "malformed"),
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
    files = sorted(Path(mercer.io.__file__).parent.rglob("*.py"))
    assert len(files) > 1
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not forbidden_modules & {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.module.split(".")[0] not in forbidden_modules
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in {*forbidden_calls, "torch.load", "np.load"}


@pytest.mark.parametrize(("part", "wrong"), [("indices", 7), ("indices", -1), ("indptr", 9)])
def test_a_sparse_array_that_points_outside_is_refused(part, wrong, tmp_path):
    model = Mahalanobis(sparse.csr_array([[0.0, 2.5], [1.0, 0.0]]))
    getattr(model.factor, part)[-1] = wrong
    mercer.save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="malformed"):
        mercer.load(tmp_path / "model")
