"""Checkpoints: a training killed at any moment ends as one that was not; damage and other trainings are refused."""

import contextlib
import json
import math
import multiprocessing
import os
import random
import time
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import mercer
from mercer import Mahalanobis
from mercer.exceptions import ConvergenceWarning, InvalidParameterError, ModelFileError
from mercer.training import Recipe, data_digest, train
from mercer.training import checkpoint as checkpoints
from mercer.training.randomness import global_chance_from
from tests.examples_of import numbers
from tests.model_files import same, sealed

X = torch.tensor(numbers(26, 4), dtype=torch.float32)
Y = torch.tensor(numbers(26, 2, seed=9), dtype=torch.float32)


class Network(nn.Module):
    """All that is hard to resume: batch normalization, dropout, a transposed weight, a frozen layer, a moving mean."""

    def __init__(self, width=6):
        super().__init__()
        with global_chance_from(0, torch.device("cpu")):
            self.layers = nn.Sequential(
                nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.Linear(width, 2), nn.Linear(2, 2)
            )
            self.across = nn.Parameter(torch.randn(2, 4).T)
        self.layers[4].requires_grad_(False)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        return self.layers(x) + x @ self.across


class Stopped(BaseException):
    """Stands for what ends a process."""


class Killed:
    """Calls of a function are counted over all it wraps, and one of them raises, before or after its work."""

    def __init__(self, at=None):
        self.left = at

    def __call__(self, function):
        def counted(*arguments):
            self._count()
            result = function(*arguments)
            self._count()
            return result

        return counted

    def _count(self):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Stopped


RECIPES = {
    "adam": Recipe(3, 8, "adam", 0.05, 0.01, warmup_epochs=1, final_learning_rate=0.001),
    "adamw": Recipe(3, 8, "adamw", 0.05, 0.01, keep="last"),
    "sgd": Recipe(4, 8, "sgd", 0.05, momentum=0.8, clip_norm=0.5, patience=2),
    "lars": Recipe(3, 8, "lars", 3.0, 0.01),
}


def go(recipe, path=None, killed=None, every=0.0, module=None, pause=0.0, **options):
    """Train the network with all that `train` takes, and return it and how it went."""
    module = Network() if module is None else module
    killed = killed or Killed()

    def batch_loss(rows, generator):
        time.sleep(pause)
        module.train()
        noise = 0.1 * torch.randn(len(rows), 4, generator=generator)
        return (module(X[rows] + noise) - Y[rows]).square().mean()

    def precondition(rows, generator):
        module.across.grad.mul_(torch.rand(4, 1, generator=generator))

    def after_step():
        module.mean.lerp_(module.layers[3].bias.detach() + 0.01 * torch.rand(2), 0.5)

    def validation(generator):
        module.eval()
        return (module(X + torch.randn(X.shape, generator=generator)) - Y).square().mean()

    training = train(
        module,
        killed(batch_loss),
        len(X),
        recipe,
        seed=5,
        precondition=killed(precondition),
        after_step=killed(after_step),
        validation=killed(validation),
        progress=killed(lambda *told: None),
        checkpoint=path,
        checkpoint_seconds=every,
        **options,
    )
    return module, training


def state_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def assert_same(result, expected):
    assert result[1] == expected[1]
    assert same(state_of(result[0]), state_of(expected[0]))


# ---- resuming ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_a_checkpoint_changes_nothing(name, tmp_path):
    assert_same(go(RECIPES[name], tmp_path / "checkpoint"), go(RECIPES[name]))


@pytest.mark.parametrize("name", RECIPES)
def test_stopped_at_random_again_and_again(name, tmp_path):
    expected = go(RECIPES[name])
    chance = random.Random(name)
    path, stops = tmp_path / "checkpoint", 0
    for _ in range(100):
        try:
            result = go(RECIPES[name], path, Killed(chance.randrange(8, 40)))
            break
        except Stopped:
            stops += 1
    assert stops >= 2
    assert_same(result, expected)
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_stopped_at_every_moment(tmp_path):
    """At every call of every callable, with checkpoints at every step or at the first alone."""
    recipe = Recipe(2, 13, "adam", 0.05, patience=1, final_learning_rate=0.01)
    expected = go(recipe)
    for at in range(37):
        path = tmp_path / str(at)
        with pytest.raises(Stopped) if at < 36 else contextlib.nullcontext():
            go(recipe, path, Killed(at), every=(0.0, 1e6)[at % 2])
        assert_same(go(recipe, path), expected)


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_stopped_while_writing(function, tmp_path, monkeypatch):
    recipe = RECIPES["adam"]
    expected, real = go(recipe), getattr(os, function)
    for at in (1, 2, 7, 13):
        (tmp_path / str(at)).mkdir()
        path, calls, content = tmp_path / str(at) / "checkpoint", [], []

        def failing(*arguments, at=at, path=path, calls=calls, content=content):
            calls.append(arguments)
            if len(calls) == at:
                content.append(path.read_bytes() if path.exists() else None)
                raise KeyboardInterrupt
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(checkpoints.os, function, failing)
            with pytest.raises(KeyboardInterrupt):
                go(recipe, path)
        assert os.listdir(path.parent) == ([] if at == 1 else ["checkpoint"])
        assert content == [None if at == 1 else path.read_bytes()]
        assert_same(go(recipe, path), expected)


def train_slowly(path):
    """What is run in a process of its own, to be killed."""
    torch.set_num_threads(1)
    go(RECIPES["adam"], path, pause=0.005)


def wait_for_writes(process, path, count):
    """Wait until the file has been replaced so many times, or the process is over."""
    seen = path.stat().st_mtime_ns if path.exists() else 0
    while process.is_alive() and count > 0:
        now = path.stat().st_mtime_ns if path.exists() else 0
        count -= now != seen
        seen = now
        time.sleep(0.001)


def test_killed_processes(tmp_path):
    """SIGKILL at random moments."""
    expected = go(RECIPES["adam"])
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(
        ["tests.training.test_checkpoints", "torch._dynamo"]
    )  # the slow imports, once for all
    chance, path, codes = random.Random(0), tmp_path / "checkpoint", []
    while not codes or codes[-1] == -9:
        process = processes.Process(target=train_slowly, args=(path,))
        process.start()
        # The first write is of the state that it began with: after two a step was made, so that this ends.
        wait_for_writes(process, path, chance.randrange(2, 5))
        time.sleep(chance.uniform(0.0, 0.02))
        process.kill()
        process.join()
        codes.append(process.exitcode)
    assert codes[-1] == 0
    assert len(codes) > 2
    assert_same(go(RECIPES["adam"], path), expected)


def test_a_finished_training_is_not_made_again(tmp_path):
    first = go(RECIPES["sgd"], tmp_path / "checkpoint")
    file = (tmp_path / "checkpoint").stat()
    assert_same(go(RECIPES["sgd"], tmp_path / "checkpoint", Killed(0)), first)
    assert (tmp_path / "checkpoint").stat().st_mtime_ns == file.st_mtime_ns


def test_optimizer_states_lie_in_memory_as_before(tmp_path):
    """Else the sums of a resumed training could have another order."""
    recipe, module = RECIPES["adam"], Network()
    with pytest.raises(Stopped):
        go(recipe, tmp_path / "checkpoint", Killed(40), module=module)
    strides = []
    original = torch.optim.Adam.step

    def step(self, *arguments):
        for p, slots in self.state.items():
            strides.append(all(v.stride() == p.stride() for v in slots.values() if v.shape == p.shape))
        return original(self, *arguments)

    torch.optim.Adam.step = step
    try:
        go(recipe, tmp_path / "checkpoint", module=Network())
    finally:
        torch.optim.Adam.step = original
    assert strides
    assert all(strides)


class Failing(nn.Module):
    """A loss that turns NaN at a step; what was seen is a buffer, as it must be."""

    def __init__(self, at):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.at = at

    def go(self, path=None, killed=None, keep="best"):
        def batch_loss(rows, generator):
            self.seen += 1
            return self.weight.square().sum() * (math.nan if self.seen > self.at else 1.0)

        recipe = Recipe(3, 2, "sgd", 0.1, keep=keep)
        return self, train(
            self, (killed or Killed())(batch_loss), 8, recipe, seed=0, checkpoint=path, checkpoint_seconds=0.0
        )


@pytest.mark.parametrize("keep", ["best", "last"])
@pytest.mark.parametrize("at", [1, 3, 4, 5, 9])
def test_a_loss_that_turns_nan_after_a_resume(at, keep, tmp_path):
    """The state that is kept is the same, also where the step before the fault was in another process."""
    with pytest.warns(ConvergenceWarning) as said:
        expected = Failing(at).go(keep=keep)
    for stop in range(max(0, 2 * at - 3), 2 * at + 2):
        path = tmp_path / str(stop)
        with pytest.raises(Stopped):
            Failing(at).go(path, Killed(stop), keep)
        for _ in range(2):  # the second finds it finished, and says so again
            with pytest.warns(ConvergenceWarning) as again:
                assert_same(Failing(at).go(path, keep=keep), expected)
            assert str(again[0].message) == str(said[0].message)


def test_a_loss_that_is_nan_at_once_after_a_resume(tmp_path):
    """As on another machine: the state of the checkpoint was good, and is kept."""
    with pytest.raises(Stopped):
        Failing(100).go(tmp_path / "checkpoint", Killed(6))
    with pytest.warns(ConvergenceWarning, match="the last step where all was finite"):
        module, training = Failing(1).go(tmp_path / "checkpoint")
    assert module.seen == training.n_steps == 2
    assert module.weight[0] < 1


def test_when_checkpoints_are_written(tmp_path, monkeypatch):
    now, steps = [0.0], []
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    real = checkpoints.Checkpoint.write

    def write(self, document, tensors):
        steps.append((document["step"], document["stopped"], sorted({name.split("/")[0] for name in tensors})))
        return real(self, document, tensors)

    monkeypatch.setattr(checkpoints.Checkpoint, "write", write)
    module = nn.Linear(4, 2)

    def batch_loss(rows, generator):
        now[0] += 1.0
        return module(X[rows]).square().mean()

    train(module, batch_loss, 26, Recipe(3, 7), seed=0, checkpoint=tmp_path / "c", checkpoint_seconds=3.0)
    assert steps == [
        (0, "", ["module"]),
        (3, "", ["module", "optimizer"]),
        (6, "", ["best", "module", "optimizer"]),
        (9, "", ["best", "module", "optimizer"]),
        (12, "finished", ["module"]),
    ]


# ---- other trainings ---------------------------------------------------------------------------------------


SETTINGS = {"settings": {"loss": "barlow", "kernel": "gauss", "views": (1, 3)}, "data": "a"}


def begun(path, **options):
    with pytest.raises(Stopped):
        go(RECIPES["adam"], path, Killed(20), **options)


def half_frozen():
    module = Network()
    module.layers[0].bias.requires_grad_(False)
    return module


# name -> what is changed, and what the error says of it
OTHERS = {
    "wider": (
        {"module": lambda: Network(7)},
        r'module\.layers\.0\.weight was "float32 \(6, 4\) trained" and is "float32 \(7, 4\) trained"',
    ),
    "frozen": (
        {"module": half_frozen},
        r'training: module\.layers\.0\.bias was "float32 \(6,\) trained" and is "float32 \(6,\)"\. Put',
    ),
    "double": ({"module": lambda: Network().double()}, r'module\.across was .* and is "float64 \(4, 2\) trained"'),
    "foreign": ({"module": lambda: nn.Linear(4, 2)}, r"module\.across was .* and is null; .*; and 9 more\. Put back"),
    "recipe": (
        {"recipe": replace(RECIPES["adam"], learning_rate=0.06)},
        r"training: recipe\.learning_rate was 0\.05 and is 0\.06\. Put back",
    ),
    "settings": (
        {"settings": {"loss": "vicreg", "views": [1, 2]}},
        r'loss was "barlow" and is "vicreg"; settings\.kernel was "gauss" and is null; settings\.views was \[1, 3\]',
    ),
    "data": ({"data": "b"}, 'data was "a" and is "b"'),
}


@pytest.mark.parametrize("name", OTHERS)
def test_checkpoints_of_other_trainings_are_refused(name, tmp_path):
    path = tmp_path / "checkpoint"
    begun(path, **SETTINGS)
    content = path.read_bytes()
    changes, message = OTHERS[name]
    options = {"recipe": RECIPES["adam"], **SETTINGS, **changes}
    options["module"] = options.get("module", Network)()
    with pytest.raises(ModelFileError, match=message) as error:
        go(path=path, **options)
    assert str(error.value).startswith(f"checkpoint={str(path)!r} is of another training: ")
    assert path.read_bytes() == content
    assert_same(go(RECIPES["adam"], path, **SETTINGS), go(RECIPES["adam"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"n_rows": 25}, "n_rows was 26 and is 25"),
        ({"min_batch": 2}, "min_batch was 1 and is 2"),
    ],
)
def test_other_seeds_and_rows_are_refused(change, message, tmp_path):
    def begin(n_rows=26, seed=1, min_batch=1):
        module = nn.Linear(4, 2)
        train(
            module,
            lambda rows, generator: module(X[rows]).square().mean(),
            n_rows,
            Recipe(1),
            seed=seed,
            min_batch=min_batch,
            checkpoint=tmp_path / "checkpoint",
        )

    begin()
    with pytest.raises(ModelFileError, match=message):
        begin(**change)


def test_settings_that_json_cannot_hold(tmp_path):
    for settings in ({"kernel": object()}, {"ridge": math.nan}, {"m": np.int64(3)}):
        with pytest.raises(InvalidParameterError, match="settings=.* is not allowed"):
            go(RECIPES["adam"], tmp_path / "c", settings=settings)


# ---- damage ------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    """A checkpoint of a small module, and a function that reads it again."""
    about, path = {"recipe": {"n_epochs": 3}}, tmp_path / "checkpoint"
    tensors = {"module/weight": torch.tensor([[1.0, -2.0]]), "optimizer/step/weight": torch.tensor(3.0)}
    checkpoints.Checkpoint(path, about, 0.0).write({"step": 3}, tensors)
    return path, lambda: checkpoints.Checkpoint(path, about, 0.0).read()


def test_there_and_back(small):
    document, tensors = small[1]()
    assert document["step"] == 3
    assert tensors["module/weight"].tolist() == [[1.0, -2.0]]
    assert tensors["optimizer/step/weight"].shape == ()


def test_every_flipped_bit_is_noticed(small):
    path, read = small
    data = path.read_bytes()
    chance = random.Random(0)
    for i in range(len(data)):
        damaged = bytearray(data)
        damaged[i] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="is not a checkpoint, or is damaged"):
            read()


@pytest.mark.parametrize(("before", "after"), [('"F32"', '"I32"'), ("[1,2]", "[2,1]"), ("module/", "modulo/")])
def test_tensors_of_another_type_shape_or_name_are_noticed(before, after, small):
    path, read = small
    assert before.encode() in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(before.encode(), after.encode()))
    with pytest.raises(ModelFileError, match="does not match its SHA-256"):
        read()


def test_every_truncation_and_extension_is_noticed(small):
    path, read = small
    data = path.read_bytes()
    for damaged in [*(data[:length] for length in range(len(data))), data + b"\0", data + data]:
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="is not a checkpoint, or is damaged"):
            read()


def test_foreign_files(small, tmp_path):
    path, read = small
    mercer.save(Mahalanobis(np.array([1.0, -2.0])), tmp_path / "model")
    foreign = {
        "text": b"kernel: gaussian\n" * 30,
        "zip": b"PK\x03\x04" + bytes(100),
        "tensors": safetensors.torch.save({"weight": torch.ones(2)}),
        "model": (tmp_path / "model").read_bytes(),
        "narrow": sealed({"weight": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"\0"),
    }
    for data in foreign.values():
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"checkpoint='.*checkpoint' is not a checkpoint, or is damaged"):
            read()


def test_another_version_is_named(small, monkeypatch):
    monkeypatch.setattr(checkpoints, "FORMAT", "mercer-checkpoint 2")
    with pytest.raises(ModelFileError, match="of the format 'mercer-checkpoint 1', and this version reads '.* 2'"):
        small[1]()


def test_a_damaged_checkpoint_stops_a_training(tmp_path):
    path = tmp_path / "checkpoint"
    begun(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="damaged"):
        go(RECIPES["adam"], path)


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match="create the folder"):
        go(RECIPES["adam"], tmp_path / "none" / "checkpoint")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        go(RECIPES["adam"], tmp_path)
    with pytest.raises(InvalidParameterError, match="checkpoint=3 is not allowed"):
        go(RECIPES["adam"], 3)
    with pytest.raises(InvalidParameterError, match="checkpoint_seconds=-1"):
        go(RECIPES["adam"], tmp_path / "checkpoint", every=-1)


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    go(RECIPES["lars"], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").is_file()


def test_what_differs():
    before = {"a": 1, "b": {"c": [1, 2], "d": None}, "e": {"f": 1}}
    now = {"a": 1.0, "b": {"c": [1, 3], "g": "x"}, "e": 2}
    assert checkpoints.differences(before, now) == [
        "b.c was [1, 2] and is [1, 3]",
        'b.g was null and is "x"',
        'e was {"f": 1} and is 2',
    ]
    assert json.loads(json.dumps(before)) == checkpoints.as_json("settings", before)


# ---- digests -----------------------------------------------------------------------------------------------


def test_digests_tell_data_apart():
    A = numbers(6, 4)
    shapes = [(A,), (A.reshape(4, 6),), (A.reshape(-1),), (A, A), (A[:3], A[3:]), ()]
    different = [*shapes, (A.astype(np.float32),), (A.view(np.int64),), (A[::-1],), (-A,)]
    assert len({data_digest(*arrays) for arrays in different}) == len(different)


def test_digests_do_not_depend_on_who_holds_the_numbers(tmp_path, monkeypatch):
    A = numbers(6, 4)
    expected = data_digest(A)
    held = np.lib.format.open_memmap(tmp_path / "A.npy", mode="w+", dtype=A.dtype, shape=A.shape)
    held[:] = A
    held.flush()
    locked = A.copy()
    locked.flags.writeable = False
    tensors = [torch.tensor(A), torch.tensor(A.T.copy()).T.requires_grad_()]
    same_numbers = [np.asfortranarray(A), locked, A.tolist(), *tensors, np.load(tmp_path / "A.npy", mmap_mode="r")]
    assert {data_digest(values) for values in same_numbers} == {expected}
    monkeypatch.setattr(checkpoints, "PIECE", 70 / 2**20)
    assert data_digest(A) == expected
    assert data_digest(A[:0]) != expected
