"""What a file may take the place of: nothing, or another file."""

import errno
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import mercer
import mercer.storage.temporaries as temporaries_of_storage
from mercer.exceptions import InvalidParameterError
from mercer.storage import check_target, write_atomically


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_is_refused_and_stays(pipe):
    with pytest.raises(OSError, match=r"pipe.* is a device, a pipe or a socket"):
        write_atomically(pipe, [b"text"])
    with pytest.raises(OSError, match=r"out='.*pipe' is a device, a pipe or a socket"):
        check_target(pipe, "out")
    model = mercer.RFMRegressor("gaussian", "identity", warp="none").fit(np.arange(6.0)[:, None], np.arange(6.0))
    with pytest.raises(OSError, match="is a device"):
        mercer.save(model, pipe)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert os.listdir(pipe.parent) == ["pipe"]


def test_a_link_to_a_device_is_refused_and_one_to_a_file_is_followed(tmp_path):
    device = tmp_path / "null"
    device.symlink_to(os.devnull)
    with pytest.raises(OSError, match="is a device"):
        check_target(device)
    (tmp_path / "file").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("file")
    write_atomically(check_target(link), [b"new"])
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "new"


# ---- writers that fail or die ---------------------------------------------------------------------------------------


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, monkeypatch):
    target = tmp_path / "model"
    target.write_bytes(b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device; nothing was written to: '.*model'"):
        write_atomically(target, [b"new"])
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


DIES_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from mercer.storage import write_atomically

def pieces():
    yield b"half"
    print("writing", flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.readline()
    yield b" and half"

write_atomically(Path(sys.argv[1]), pieces())
"""


@pytest.fixture
def writer(tmp_path):
    """A process that is in the middle of a file: one that is killed there, or one that waits for a line."""
    processes = []

    def start(what):
        command = [sys.executable, "-c", DIES_WHILE_WRITING, str(tmp_path / "file"), what]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert processes[-1].stdout.readline() == "writing\n"
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def temporaries(folder):
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_the_temporary_of_a_dead_writer_is_removed_by_the_next_and_that_of_a_living_one_is_not(writer, tmp_path):
    writer("die").wait()
    assert len(temporaries(tmp_path)) == 1
    alive = writer("wait")  # which removes what the dead one left
    (left,) = temporaries(tmp_path)
    write_atomically(tmp_path / "other", [b"text"])
    assert temporaries(tmp_path) == [left]
    alive.communicate("\n")
    assert temporaries(tmp_path) == []
    assert (tmp_path / "file").read_bytes() == b"half and half"


def test_what_only_looks_like_a_temporary_stays(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / f".mercer-{'0' * 16}.tmp").symlink_to(precious)
    os.mkfifo(tmp_path / f".mercer-{'1' * 16}.tmp")
    (tmp_path / f".mercer-{'2' * 16}.tmp").mkdir()
    (tmp_path / ".mercer-notes.tmp").write_text("mine")
    before = sorted(os.listdir(tmp_path))
    write_atomically(tmp_path / "file", [b"text"])
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "file"])
    assert precious.read_text() == "precious"


def test_a_temporary_that_was_taken_for_abandoned_before_its_lock_is_made_anew(tmp_path, monkeypatch):
    usual, calls = temporaries_of_storage._lock, []

    def late(descriptor, *, wait):
        if not calls:  # the other process is quicker this time
            os.unlink(next(tmp_path.iterdir()))
        calls.append(descriptor)
        return usual(descriptor, wait=wait)

    monkeypatch.setattr(temporaries_of_storage, "_lock", late)
    write_atomically(tmp_path / "file", [b"text"])
    assert len(calls) == 2
    assert os.listdir(tmp_path) == ["file"]


def test_a_path_with_a_nul_character_is_refused():
    with pytest.raises(InvalidParameterError, match=r"path='a\\x00b' is not allowed"):
        check_target("a\0b")
