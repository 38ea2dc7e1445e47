"""K_nm in a file, for expensive kernels: it is computed once, block by block, and then read as a memory map."""

import json
import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, row_slices, rows_per_block
from mercer.exceptions import invalid_parameter
from mercer.kernels import Kernel
from mercer.kernels.base import check_same_columns
from mercer.storage.atomic import check_target, write_atomically
from mercer.training.checkpoint import data_digest

# How many rows are computed, at most, before the file and the note about its progress are updated.
MOST_ROWS = 512


def kernel_matrix_on_disk(
    kernel: Kernel, X: Any, landmarks: Any, path: str | os.PathLike[str], *, working_memory: float = WORKING_MEMORY
) -> np.ndarray:
    """Return k(x_i, z_j) for all rows and landmarks as a memory map of a file, which is created if it does not exist.

    This is for kernels that take long and serve many fits: a tangent kernel of 60 000 images takes hours. If the
    process is stopped, the next call continues where it was. A note beside the file, `path` with ".json" added, has
    digests of the rows, the landmarks and the kernel. If one of them is different, the file is computed anew.

    Parameters
    ----------
    kernel : Kernel
        With a number for each bandwidth.
    X : array, memory map or tensor of shape (n, d)
    landmarks : array-like of shape (m, d)
        X[:m] makes the result an X for `Nystrom(kernel="precomputed")` and for the kernel `Precomputed()`.
    path : str or path
        A file in NumPy's format, such as "kernel.npy".
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.

    Returns
    -------
    memory map of shape (n, m), read-only; float32 if X and the landmarks are, else float64
    """
    target = check_target(path)
    note = target.with_name(target.name + ".json")
    z = as_tensor(landmarks)
    z = z.to(torch.promote_types(as_tensor(X[:0]).dtype, z.dtype))
    check_same_columns(X, z)
    dtype = z[:0].cpu().numpy().dtype
    of = {"rows": data_digest(X), "landmarks": data_digest(z), "kernel": kernel_digest(kernel)}
    n, m = X.shape[0], len(z)
    done = rows_done(note, of) if target.exists() and note.exists() else 0
    if target.exists() and not note.exists():
        raise invalid_parameter(
            "path", str(path), "a new file, or one that was made here: this one has no note beside it"
        )
    if done < n:
        mode = "r+" if done else "w+"
        out = np.lib.format.open_memmap(target, mode=mode, dtype=dtype, shape=(n, m))
        prepared = kernel.prepare(z)
        step = min(MOST_ROWS, rows_per_block(n, 4 * m * z.element_size(), working_memory))
        for rows in row_slices(n - done, step):
            here = slice(done + rows.start, done + rows.stop)
            x = kernel.prepare(as_tensor(X[here], dtype=z.dtype, device=z.device), beside=prepared)
            with torch.no_grad():
                out[here] = kernel.values(x, prepared).cpu().numpy()
            out.flush()
            write_atomically(note, [json.dumps({"of": of, "rows": here.stop}).encode()])
        del out
    return np.load(target, mmap_mode="r")


def rows_done(note: Any, of: dict[str, str]) -> int:
    """Return how many rows of a file are computed, by its note; 0 if the file is of other rows or another kernel."""
    try:
        found = json.loads(note.read_text())
        return int(found["rows"]) if found["of"] == of else 0
    except (ValueError, KeyError, TypeError):
        return 0


def kernel_digest(kernel: Kernel) -> str:
    """Return a digest of the kernel's class and parameters, with the weights of networks."""
    texts: list[str] = []
    arrays: list[Any] = []
    for leaf in kernel.leaves():
        texts.append(type(leaf).__name__)
    for name, value in sorted(kernel.get_params().items()):
        if isinstance(value, torch.nn.Module):
            texts.append(f"{name}={value!r}")
            arrays += [weight.detach().reshape(-1) for weight in value.state_dict().values()]
        elif isinstance(value, (np.ndarray, Tensor)):
            arrays.append(value)
        elif not isinstance(value, Kernel):
            texts.append(f"{name}={value!r}")
    return data_digest(np.frombuffer("\n".join(texts).encode(), dtype=np.uint8), *arrays)
