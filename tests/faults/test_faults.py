"""Faults of every kind, a few of each; `make test-faults` and `make fuzz` try many more."""

import errno
import json
import os

import numpy as np
import pytest
import typer

import mercer
from mercer.app.cli.app import app
from mercer.io.classes import addresses, is_allowed, resolve
from mercer.io.container import unpack
from mercer.io.objects import OF_ALL, SCHEMAS
from tests.faults.commands import COMMANDS, WITHOUT_FILES, prepared, run
from tests.faults.failing_writes import failing_writes
from tests.faults.fuzz import NAMES, outcome_of
from tests.faults.kills import is_whole, left
from tests.faults.models import MAKERS, saved
from tests.faults.outcomes import judged

ERRORS = [errno.ENOSPC, errno.EIO, errno.EINTR]
FEW = [
    "kernel",
    "ColumnWarp",
    "RFMRegressor",
    "KernelDiscriminant",
    "Nystrom",
    "TableEncoder",
    "checkpoint",
    "concepts",
]


def bad_outcomes(seeds, folder):
    outcomes = {seed: outcome_of(seed, folder) for seed in seeds}
    return {seed: outcome for seed, outcome in outcomes.items() if outcome[1].startswith("bad")}


@pytest.mark.parametrize("name", FEW)
def test_damaged_files_are_refused_or_work(name, tmp_path):
    first = NAMES.index(name)
    assert bad_outcomes(range(first, first + 20 * len(NAMES), len(NAMES)), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_damaged_files_are_refused_or_work(part, tmp_path):
    assert bad_outcomes(range(10_000 + 200 * part, 10_000 + 200 * (part + 1)), tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_whole_files_work(name, tmp_path):
    assert judged(name, saved(name), tmp_path / "whole") == "works"


@pytest.mark.parametrize("name", ["ColumnWarp", "GPRegressor-two", "RFMClassifier", "KernelEmbedding", "TableEncoder"])
def test_every_fitted_attribute_is_in_the_schema(name, tmp_path):
    check_attributes(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_every_fitted_attribute_of_every_class_is_in_the_schema(name, tmp_path):
    check_attributes(name, tmp_path)


def check_attributes(name, folder):
    if name.startswith(("kernel", "Pipeline")):  # they have no schema of their own
        return
    (folder / "model").write_bytes(saved(name))
    model = mercer.load(folder / "model")
    schema = SCHEMAS[type(model).__name__]
    own = {key for key in vars(model) if key not in model.get_params(deep=False)}
    assert own <= {*schema.fields, *schema.optional, *OF_ALL}


# ---- writes that fail -----------------------------------------------------------------------------------------------


def check_failing_writes(target, write, writes_more=False):
    """Let each call that writes fail once: the old file stays, nothing is left, the error names file and cause."""
    with failing_writes(0, 0) as calls:
        assert write() is None
    for fail_at in range(1, calls.made):  # the last call syncs the folder, when the new file is in its place
        for number in ERRORS:
            target.write_bytes(b"old")
            with failing_writes(fail_at, number) as made:
                message = write()
            assert made.made >= fail_at
            # Python tries again after EINTR, and the folder of a file that is not the last need not be synced.
            if message is None and (number == errno.EINTR or writes_more):
                assert target.read_bytes() != b"old"
                continue
            assert os.strerror(number) in message, (fail_at, message)
            assert target.name in message
            content = target.read_bytes()
            # Of several files, one is whole before another fails.
            assert content == b"old" or (writes_more and is_whole(target, content))
            assert not left(target.parent)
    return calls.made


def test_every_failing_write_of_a_save_leaves_the_old_file(tmp_path):
    target = tmp_path / "model.mercer"

    def write():
        try:
            mercer.save(mercer.Mahalanobis(np.arange(20_000.0)), target)
        except OSError as error:
            return str(error)
        return None

    assert check_failing_writes(target, write) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_failing_write_of_a_command_leaves_the_old_file(name, tmp_path):
    prepared(tmp_path)
    command = COMMANDS[name]
    target = tmp_path / command.target

    def write():
        for other in command.others:
            (target.parent / other).unlink(missing_ok=True)
        code, message = run(name, tmp_path)
        if not code:
            return None
        # Another of several files may be the one that could not be written.
        named = f" {target.name}" if any(other in message for other in command.others) else ""
        return message + named + ("" if code == 1 else f" exit code {code}: a defect")

    check_failing_writes(target, write, writes_more=bool(command.others))


def test_every_command_that_writes_is_tried():
    def names(group, before=""):
        for name, command in group.commands.items():
            yield from names(command, f"{before}{name} ") if hasattr(command, "commands") else [before + name]

    tried = {name.partition("-")[0] for name in COMMANDS}
    assert tried | set(WITHOUT_FILES) == set(names(typer.main.get_command(app)))
    assert not tried & set(WITHOUT_FILES)


def classes_named(value):
    """Yield the classes that a document of a model file names."""
    if isinstance(value, dict):
        if isinstance(value.get("class"), str):
            yield value["class"]
        for item in value.values():
            yield from classes_named(item)
    elif isinstance(value, list):
        for item in value:
            yield from classes_named(item)


@pytest.mark.slow
def test_every_class_that_can_be_saved_is_damaged():
    kinds = {name: resolve(address) for name, address in addresses().items()}
    savable = {name for name, kind in kinds.items() if isinstance(kind, type) and is_allowed(name, kind)}
    named = {name for model in MAKERS for name in classes_named(json.loads(unpack(bytearray(saved(model)))[0]))}
    assert savable - named == set()
    assert set(SCHEMAS) - {name.rpartition(".")[2] for name in named} == set()
