"""A small training with a checkpoint, killed in the middle; what comes of going on from a damaged one."""

import contextlib
import functools
import tempfile
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np

import mercer
from mercer.exceptions import ConvergenceWarning
from mercer.training import Recipe
from mercer.training.checkpoint import Checkpoint
from tests.faults.models import CLASSES, X
from tests.faults.outcomes import MIB, MOST_IN_USE, NAMED, Hang, described, within_memory, within_seconds

RECIPE = Recipe(n_epochs=4, batch_size=10, optimizer="adam", learning_rate=1e-3)


class Stop(Exception):
    """Ends a training as a kill would."""


def fitted(path, stop_at=None):
    """Fit a small network with a checkpoint at a path; raise Stop before a step if so asked."""
    calls = {"n": 0}

    def view(batch, generator):
        calls["n"] += 1
        if calls["n"] == stop_at:
            raise Stop
        return batch

    model = mercer.MCR2(4, hidden=5, augment=view, recipe=RECIPE, checkpoint=path, random_state=0)
    return model.fit(X, CLASSES)


@functools.cache
def saved_checkpoint():
    """Return the bytes of the checkpoint of a training that was stopped in its third epoch."""
    from mercer.training import checkpoint

    with tempfile.TemporaryDirectory() as folder, _always(checkpoint):
        path = Path(folder) / "checkpoint"
        try:
            fitted(path, stop_at=8)
        except Stop:
            return path.read_bytes()
    raise AssertionError("the training was not stopped")


class _always:
    """Let checkpoints be written at every step."""

    def __init__(self, module):
        self.kind, self.usual = module.Checkpoint, module.Checkpoint.is_due

    def __enter__(self):
        self.kind.is_due = lambda checkpoint: True

    def __exit__(self, *_):
        self.kind.is_due = self.usual


@contextlib.contextmanager
def _read_within(more):
    """Let reading a checkpoint take no more than so many bytes; the training after it may take others."""
    usual = Checkpoint.read

    def read(checkpoint):
        with within_memory(more):
            return usual(checkpoint)

    with patch.object(Checkpoint, "read", read):
        yield


def judged_checkpoint(name, data, path):
    """Return what comes of going on from a checkpoint with this content."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            with within_seconds(), within_memory(MOST_IN_USE), _read_within(64 * MIB + 4 * len(data)):
                model = fitted(path)
                answer = model.transform(X)
        except NAMED as error:
            too_long = len(str(error)) > 5000 or not str(error).isprintable()
            return "bad: message too long or not printable" if too_long else "refused"
        except (Exception, Hang) as error:
            return f"bad: {described(error)}"
    finite = np.isfinite(answer).all() and all(np.isfinite(value).all() for value in model.weights_.values())
    return "works" if finite else "bad: the weights are not finite"
