"""What a file may take the place of: nothing, or another file."""

import os
import stat

import numpy as np
import pytest

import mercer
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
