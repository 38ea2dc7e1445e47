"""Saving and loading: what the user must hand back, what cannot be saved, and how files are written."""

import os
import stat

import numpy as np
import pytest
import torch
from sklearn.preprocessing import MaxAbsScaler

import mercer
import mercer.io
from mercer import Mahalanobis, Nystrom
from mercer.exceptions import InvalidParameterError
from mercer.io import container
from mercer.io.vocabulary import BIT_GENERATORS, MAX_DEPTH
from mercer.kernels import Custom, Gaussian, Linear
from mercer.storage import atomic as files
from tests.examples_of import numbers, rational
from tests.model_files import (
    nested,
    same,
    there_and_back,
)

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
    mercer.save(Mahalanobis([rational, {"b": network}, rational]), path)
    loaded = mercer.load(path, {"factor__0": rational, "factor__1__b": network})
    assert loaded.factor == [rational, {"b": network}, rational]


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
    "user_class": (OwnKernel(), r"factor is a test_io_refusals\.OwnKernel.*Mercer itself defines"),
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


@pytest.mark.parametrize("model", [OwnKernel(), MaxAbsScaler(), 42, [Gaussian()], Gaussian, rational, None])
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


def test_too_much_text(monkeypatch, tmp_path):
    monkeypatch.setattr(container, "MAX_HEADER", 1000)
    mercer.save(Mahalanobis([0] * 10), tmp_path / "model")
    with pytest.raises(ValueError, match=r"bytes of text .*at most 1000"):
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
        files.write_atomically(path, pieces())
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
