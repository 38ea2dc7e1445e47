"""Loading: what a file may make us take, read, write or believe."""

import json
import os
import signal
import tracemalloc

import numpy as np
import pytest
import torch

import mercer
from mercer import MCR2, KernelDiscriminant, KernelEmbedding, Mahalanobis
from mercer.embedding import Steps
from mercer.exceptions import ModelFileError, NumericalError
from mercer.io.schemas import SCHEMAS
from mercer.kernels import Gaussian, NeuralTangent
from mercer.networks import MLP
from tests.faults import arrays
from tests.faults.models import MAKERS
from tests.faults.mutations import parts_of, resealed
from tests.model_files import load_bytes, metric, with_document, with_model
from tests.test_estimators import ESTIMATORS

MIB = 2**20


def changed(model, folder, change):
    """Save a model, let `change` have its document, and return the path of the file, sealed again."""
    path = folder / "changed"
    mercer.save(model, path)
    header, body = parts_of(path.read_bytes())
    document = json.loads(header["__metadata__"]["document"])
    change(document["model"]["object"])
    header["__metadata__"]["document"] = json.dumps(document)
    path.write_bytes(resealed(header, body))
    return path


@pytest.fixture(scope="module")
def discriminant():
    X = np.random.RandomState(0).randn(20, 3)
    return KernelDiscriminant(random_state=0).fit(X, X[:, 0] > 0)


# ---- what is no file ------------------------------------------------------------------------------------------------


@pytest.fixture
def soon():
    """Fail, and do not hang."""
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("it hangs")))
    signal.alarm(10)
    yield
    signal.alarm(0)


def test_pipes_and_devices_are_refused_unread(tmp_path, soon):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
        with pytest.raises(ModelFileError, match="is a device, a pipe or a socket, not a file"):
            mercer.load(path)
    model = mercer.MCR2(hidden=4, checkpoint=tmp_path / "other", random_state=0)
    os.mkfifo(tmp_path / "other")
    with pytest.raises(OSError, match="is a device, a pipe or a socket"):
        model.fit(np.eye(6), [0, 1, 0, 1, 0, 1])


def test_only_the_first_bytes_of_a_foreign_file_are_read(tmp_path, monkeypatch):
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(2**40)  # a terabyte of holes
    with pytest.raises(ModelFileError, match="is not a Mercer model file"):
        mercer.load(path)
    mercer.save(Gaussian(1.0), path)
    with open(path, "r+b") as file:
        file.truncate(64 * MIB)
    with pytest.raises(ModelFileError, match="is made of holes"):
        mercer.load(path)
    mercer.save(Gaussian(1.0), path)
    monkeypatch.setattr("mercer.storage.reading.memory_of_machine", lambda: 100)
    with pytest.raises(ModelFileError, match="more than the 0 MiB of this machine's memory"):
        mercer.load(path)


# ---- memory ---------------------------------------------------------------------------------------------------------


WIDE = {"text": {"shape": [1], "width": 2**27, "items": ["a"]}}
GREEDY = {
    "many wide strings": [WIDE] * 8,
    "one wide string": WIDE,
    "many lists": [[]] * 300_000,
    "many dictionaries": [{"dict": []}] * 200_000,
    "many objects": [metric()] * 100_000,
}


@pytest.mark.parametrize("name", GREEDY)
def test_memory_at_load_is_bounded_by_the_size_of_the_file(name, tmp_path):
    data = with_document(with_model(metric(GREEDY[name])))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="far more (memory|parts) than"):
            load_bytes(data, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB + 4 * len(data)
    finally:
        tracemalloc.stop()


def test_large_arrays_of_strings_come_back_and_take_what_the_file_has(tmp_path):
    texts = np.array(["ä" * 300, "b", "\U0001f600", ""] * 900).reshape(2, 1800)
    mercer.save(Mahalanobis(texts), tmp_path / "model")
    loaded = mercer.load(tmp_path / "model").factor
    assert loaded.dtype == texts.dtype
    assert (loaded == texts).all()
    assert (tmp_path / "model").stat().st_size > texts.nbytes


def test_a_model_of_very_many_small_values_is_saved_as_large_as_they_are(tmp_path):
    model = Mahalanobis()
    model.many_ = [float(i % 7) for i in range(800_000)]
    mercer.save(model, tmp_path / "model")
    text = json.dumps(model.many_)
    assert (tmp_path / "model").stat().st_size > len(text) + 2 * MIB
    assert mercer.load(tmp_path / "model").many_ == model.many_
    model.many_ *= 4
    with pytest.raises(ValueError, match="more than can be loaded again"):
        mercer.save(model, tmp_path / "model")
    assert mercer.load(tmp_path / "model").many_ == model.many_[:800_000]


def test_characters_that_do_not_exist_are_refused(tmp_path):
    header = {"0": {"dtype": "U32", "shape": [1, 1], "data_offsets": [0, 4]}}
    crafted = {"characters": {"name": "0", "order": "C", "shape": [1]}}
    good = with_document(with_model(metric(crafted)), header, b"a\0\0\0")
    assert load_bytes(good, tmp_path).factor.tolist() == ["a"]
    with pytest.raises(ModelFileError, match="some that do not exist"):
        load_bytes(with_document(with_model(metric(crafted)), header, b"\xff\xff\xff\xff"), tmp_path)


# ---- fields ---------------------------------------------------------------------------------------------------------


def test_paths_and_devices_stay_behind(tmp_path):
    path = changed(
        MCR2(checkpoint=tmp_path / "there", device="cpu"),
        tmp_path,
        lambda model: model["params"].update(checkpoint="/any/path", device="cuda"),
    )
    loaded = mercer.load(path)
    assert loaded.checkpoint is None
    assert loaded.device is None


def test_paths_inside_a_solver_stay_behind_too(tmp_path):
    mercer.save(KernelEmbedding("simclr", solver=Steps(checkpoint=tmp_path / "there")), tmp_path / "model")
    assert mercer.load(tmp_path / "model").solver == Steps()


def test_machines_may_leave_a_share_to_the_mean(tmp_path):
    X = np.random.RandomState(0).randn(60, 3)
    model = mercer.RFMRegressor("laplace", warp="none", random_state=0).fit(X, np.random.RandomState(1).randn(60))
    assert sum(machine.share for machine in model.machines_) < 0.99
    mercer.save(model, tmp_path / "model")
    np.testing.assert_allclose(mercer.load(tmp_path / "model").predict(X), model.predict(X))


WRONG = {
    "missing": (lambda state: state.pop("priors_"), "priors_ is missing in a fitted KernelDiscriminant"),
    "kind": (
        lambda state: state.update(temperature_="hot"),
        "temperature_ is 'hot', and must be a finite number above 0",
    ),
    "size": (
        lambda state: state.update(n_features_in_=4),
        r"basis_ is an array of float64 of shape \(20, 3\).*length 4",
    ),
    "object": (lambda state: state.update(kernel_=metric()), "kernel_ is Mahalanobis.*must be a kernel"),
    "alone": (lambda state: (state.clear(), state.update(x_=1)), "n_features_in_ is missing"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_state_that_does_not_fit_together_is_refused_by_the_name_of_the_field(name, discriminant, tmp_path):
    change, message = WRONG[name]
    path = changed(discriminant, tmp_path, lambda model: change(model["state"]))
    with pytest.raises(ModelFileError, match=message):
        mercer.load(path)


def test_every_estimator_has_a_schema_and_is_among_the_models_that_are_damaged():
    kinds = {type(estimator).__name__ for estimator in ESTIMATORS}
    assert kinds <= SCHEMAS.keys()
    assert kinds <= {name.partition("-")[0] for name in MAKERS}
    assert kinds <= arrays.ESTIMATORS.keys()


def test_memberships_of_a_file_are_those_of_its_clusters(tmp_path):
    model = MAKERS["NMCE"]()
    changes = {
        "n_clusters": lambda file: file["params"].update(n_clusters=3),
        "n_init": lambda file: file["params"].update(n_init=0),
        "labels_": lambda file: file["state"].update(labels_=file["state"]["seed_"]),
        "cluster_head.bias": lambda file: file["state"]["weights_"]["dict"].pop(),
    }
    for field, change in changes.items():
        with pytest.raises(ValueError, match=field):
            mercer.load(changed(model, tmp_path, change))


def test_parameters_of_a_loaded_model_are_those_that_a_fit_takes(tmp_path):
    X = np.random.RandomState(0).randn(12, 2)
    network = mercer.MCR2(hidden=4, recipe=mercer.training.Recipe(n_epochs=1), random_state=0).fit(X, X[:, 0] > 0)
    for params, message in [
        ({"hidden": 200_000_000}, "hidden is 200000000, and must be 4, as weights_ have it"),
        ({"n_components": 10**8}, "n_components is 100000000, and must be None or 4"),
        ({"epsilon": -1.0}, "epsilon=-1.0 is not allowed"),
    ]:
        with pytest.raises(ModelFileError, match=message):
            mercer.load(changed(network, tmp_path, lambda model, params=params: model["params"].update(params)))


def test_numbers_that_are_not_finite_are_refused(discriminant, tmp_path):
    for value in (np.nan, np.inf):
        broken = KernelDiscriminant(random_state=0)
        vars(broken).update(vars(discriminant))
        broken.coefficients_ = np.where(np.arange(20)[:, None] == 3, value, discriminant.coefficients_)
        mercer.save(broken, tmp_path / "broken")
        with pytest.raises(ModelFileError, match=r"coefficients_ .*finite: it has NaN or infinite"):
            mercer.load(tmp_path / "broken")


def test_messages_are_short_and_command_no_terminal(tmp_path):
    nasty = "\x1b[2J\x07" + "x" * 2_000_000
    for model in (metric(name=nasty), {nasty: 1}, metric(state={nasty: 1}), metric({"type": nasty})):
        with pytest.raises(ModelFileError) as caught:
            load_bytes(with_document(with_model(model, mercer=nasty)), tmp_path)
        assert len(str(caught.value)) < 3000
        assert str(caught.value).isprintable()


def test_a_partition_that_goes_round_in_circles_is_refused(tmp_path):
    from mercer.io.objects import SCHEMAS
    from mercer.io.schema import Place
    from mercer.tabular_models.partition import Partition

    columns = mercer.ColumnWarp().fit(np.eye(3))
    for children, is_tree in [([[1, -1], [-2, -3]], True), ([[1, -1], [0, -2]], False), ([[-1, -1], [-2, -3]], False)]:
        partition = Partition(columns, np.ones((2, 3)), np.zeros(2), np.array(children, dtype=np.int32))
        if is_tree:
            SCHEMAS["Partition"].together(partition, Place("partition"))
        else:
            with pytest.raises(ModelFileError, match="must be a tree of cuts"):
                SCHEMAS["Partition"].together(partition, Place("partition"))


def test_networks_with_weights_that_are_no_numbers_are_refused(tmp_path):
    kernel = NeuralTangent(MLP(3, (4,), random_state=0))
    with torch.no_grad():
        next(kernel.network.parameters())[0, 0] = torch.nan
    mercer.save(kernel, tmp_path / "model")
    with pytest.raises(ModelFileError, match="NaN or infinite numbers in .*weight of mercer.networks.MLP"):
        mercer.load(tmp_path / "model")
    with pytest.raises(NumericalError, match="network gives NaN"):
        kernel(np.ones((3, 3)))
