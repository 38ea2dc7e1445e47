"""Kill saves, trainings and commands at random moments: python -m tests.faults.kills --count 200 [--seed 0]."""

import argparse
import collections
import io
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

import mercer
from mercer.app.files.tables import read_table
from mercer.training import checkpoint
from tests.faults.checkpoints import _always, fitted
from tests.faults.commands import COMMANDS, prepared, run

BIG = mercer.Mahalanobis(np.arange(400_000.0))


def save_big(folder):
    """Save a model of some megabytes."""
    mercer.save(BIG, folder / "big.mercer")


def train(folder):
    """Train with a checkpoint at every step."""
    with _always(checkpoint):
        fitted(folder / "checkpoint")


def command(name, folder):
    """Run a command, which must end well."""
    code, message = run(name, folder)
    if code:
        raise AssertionError(message)


JOBS = {
    "save": (save_big, "big.mercer"),
    "train": (train, "checkpoint"),
    **{name: (lambda folder, name=name: command(name, folder), COMMANDS[name].target) for name in COMMANDS},
}


def in_child(job, folder):
    """Start a job in a child; return its number."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        warnings.simplefilter("ignore")
        code = 1
        try:
            job(folder)
            code = 0
        finally:
            os._exit(code)
    return child


def whole(path):
    """Return the content, or None if there is no file."""
    return path.read_bytes() if path.exists() else None


def is_right(name, content, before, after):
    """Whether a file is the old one, the new one, or for checkpoints one that a training goes on from."""
    return content in (before, after) or name == "train"


def left(folder):
    return [path.name for path in folder.rglob("*.tmp")]


def killed_once(name, folder, dice, seconds):
    """Kill a job at a random moment; return what is wrong, None if nothing is, and whether it left a temporary."""
    job, target = JOBS[name]
    path = folder / target
    before = whole(path)
    child = in_child(job, folder)
    # Most of a job computes: half of the kills come when a temporary is there, or at the end.
    end, delay = time.monotonic() + 2 * seconds + 1.0, dice.uniform(0.0, seconds)
    waits_for_write = dice.random() < 0.5
    start = time.monotonic()
    while time.monotonic() < end:
        if (waits_for_write and left(folder)) or (not waits_for_write and time.monotonic() - start >= delay):
            break
        if os.waitpid(child, os.WNOHANG)[0]:
            child = 0
            break
    if child:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    abandoned, content = bool(left(folder)), whole(path)
    # The next run: it ends well, and nothing of the dead one is left.
    child = in_child(job, folder)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    after = whole(path)
    wrong = None
    if code:
        wrong = f"the next run ended with {code}"
    elif left(folder):
        wrong = f"temporaries are left: {left(folder)}"
    elif not is_right(name, content, before, after) and not is_whole(path, content):
        wrong = f"the file is neither the old nor the new one: {len(content or b'')} bytes"
    return wrong, abandoned


def is_whole(path, content):
    """Whether a file that differs from both runs is whole all the same: some hold the time at which they were made."""
    if content is None:
        return False
    if path.suffix == ".html":
        return content.rstrip().endswith(b"</html>")
    if path.suffix == ".md":
        return content.startswith(b"#") and content.endswith(b"\n")
    if path.suffix == ".png":
        Image.open(io.BytesIO(content)).load()
        return True
    if path.suffix == ".npz":
        return all(np.load(io.BytesIO(content))[name].size for name in "Xy")
    other = path.with_name(f"other-{path.name}")
    other.write_bytes(content)
    if path.suffix == ".mercer":
        mercer.load(other)
    else:
        read_table(other)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice, found, bad = random.Random(options.seed), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        prepared(folder)
        usual = {}
        for name, (job, target) in JOBS.items():
            start = time.monotonic()
            os.waitpid(in_child(job, folder), 0)
            usual[name] = time.monotonic() - start
            assert (folder / target).exists(), name
        for i in range(options.count):
            name = list(JOBS)[i % len(JOBS)]
            if name == "train":
                (folder / "checkpoint").unlink(missing_ok=True)
            wrong, abandoned = killed_once(name, folder, dice, usual[name])
            found["killed while writing" if abandoned else "killed elsewhere, or done"] += 1
            if wrong:
                bad += 1
                print(f"kill {i}, {name}: {wrong}", flush=True)
    print(f"{options.count} kills: {dict(found)}; {bad} bad")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
