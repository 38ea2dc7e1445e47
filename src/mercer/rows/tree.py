"""Sums in a tree whose shape depends only on the number of blocks, in this process or as tasks of workers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import walk_by
from mercer.rows.freed_memory import freed_memory_is_kept

# The number of branches of each node of the tree. The blocks of one branch are one task of a worker. They have enough
# rows that sending the result, of m^2 numbers for m landmarks, takes little time beside the work, and few enough that a
# million rows give many workers tasks. In one process, the tree holds one result for each level: three for five hundred
# blocks.
FAN = 8

Make = Callable[..., Callable[..., tuple[Tensor, ...]]]
"""(*values) -> a function that takes one block of each source, as tensors, and returns a tuple of tensors."""


class TreeSum:
    """The sum of tuples of tensors that are added one by one, in a tree whose shape depends only on their number."""

    def __init__(self) -> None:
        self._levels: list[list[Tensor]] = []
        self._counts: list[int] = []

    def add(self, terms: Sequence[Tensor]) -> None:
        """Add a tuple of tensors, which are not changed."""
        self._add(0, terms, is_own=False)

    def total(self) -> tuple[Tensor, ...] | None:
        """Return the sum, or None if nothing was added. Nothing may be added afterwards."""
        carried: list[Tensor] | None = None
        for totals, count in zip(self._levels, self._counts, strict=True):
            if carried is not None and count:
                for total, term in zip(totals, carried, strict=True):
                    total += term
            carried = totals if count else carried
        return None if carried is None else tuple(carried)

    def state(self) -> dict[str, np.ndarray]:
        """Return the partial sum as arrays, from which `of_state` restores it."""
        held = {
            f"{level} {j}": term.cpu().numpy()
            for level, terms in enumerate(self._levels)
            for j, term in enumerate(terms)
        }
        return held | {"counts": np.array(self._counts, dtype=np.int64)}

    @classmethod
    def of_state(cls, state: dict[str, np.ndarray], device: Any = None) -> "TreeSum":
        """Return the partial sum that a `state` describes, on a device."""
        total = cls()
        total._counts = state["counts"].tolist()
        widths = [sum(name.startswith(f"{level} ") for name in state) for level in range(len(total._counts))]
        total._levels = [
            [torch.as_tensor(np.array(state[f"{level} {j}"]), device=device) for j in range(width)]
            for level, width in enumerate(widths)
        ]
        return total

    def _add(self, level: int, terms: Sequence[Tensor], is_own: bool) -> None:
        """Add tensors to a level; `is_own` says that they may be written into. A full level goes to the next one."""
        if level == len(self._levels):
            self._levels.append([])
            self._counts.append(0)
        if self._counts[level] == 0:
            self._levels[level] = list(terms) if is_own else [accumulator(term) for term in terms]
        else:
            for total, term in zip(self._levels[level], terms, strict=True):
                total += term
        self._counts[level] += 1
        if self._counts[level] == FAN:
            full, self._levels[level], self._counts[level] = self._levels[level], [], 0
            self._add(level + 1, full, is_own=True)


def accumulator(term: Tensor) -> Tensor:
    """Return a copy to which terms are added. It is float64, since a million float32 terms lose small eigenvalues."""
    return term.to(torch.float64 if term.is_floating_point() else term.dtype, copy=True)


def block_sum(make: Make, values: tuple[Any, ...], parts: Sequence[Any], rows_a_block: int, **placement: Any) -> list:
    """Return the sum over the blocks of one branch of the tree, as arrays. This is a task of a worker."""
    with freed_memory_is_kept():
        function, total = make(*values), TreeSum()
        for _, blocks in walk_by(parts, rows_a_block, **placement):
            total.add(function(*blocks))
    return [term.cpu().numpy() for term in total.total() or ()]


def added(branches: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return the sum of branches, in their order. This is the task of a worker at a node of the tree."""
    total = TreeSum()
    for terms in branches:
        total.add([torch.from_numpy(np.asarray(term)) for term in terms])
    return [term.numpy() for term in total.total() or ()]


def block_map(make: Make, values: tuple[Any, ...], parts: Sequence[Any], rows_a_block: int, **placement: Any) -> list:
    """Return the results for the rows of one branch of the tree, as arrays. This is a task of a worker."""
    with freed_memory_is_kept():
        function = make(*values)
        found = [function(*blocks) for _, blocks in walk_by(parts, rows_a_block, **placement)]
    return [torch.cat(pieces).cpu().numpy() for pieces in zip(*found, strict=True)]
