"""All random numbers of a training follow from one seed and the number of the step, so that no generator is saved."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_of(seed: int, purpose: str, number: int = 0) -> int:
    """Return a seed for one purpose (an order of rows, the views of a step) at one epoch or step.

    Hashed, since generators with neighboring seeds are not independent. torch's generator on the CPU takes 32 bits of
    it, so that among 100 000 steps one pair or so shares its numbers, on other rows.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def generator_of(seed: int, purpose: str, number: int = 0) -> torch.Generator:
    """Return a generator on the CPU, whatever the device: the same numbers everywhere."""
    return torch.Generator().manual_seed(seed_of(seed, purpose, number))


# Dropout, and the layers that draw their own first weights, can draw from torch's global generators alone, and these
# belong to the whole process: threads that train at the same time take turns. Reentrant, for a network that is built
# inside another's training.
_GLOBAL_GENERATORS = threading.RLock()


@contextmanager
def global_chance_from(seed: int, device: torch.device) -> Iterator[None]:
    """Let torch's global generators, which dropout uses, start at `seed` inside the block; put them back after it.

    What is drawn inside does not depend on what was drawn before, nor in another thread, and what is drawn after does
    not depend on it. Only one thread is inside at a time.
    """
    on_cpu = device.type == "cpu"
    with _GLOBAL_GENERATORS, torch.random.fork_rng(devices=[] if on_cpu else [device], device_type=device.type):
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        if not on_cpu:
            state = torch.Generator(device).manual_seed(seed).get_state()
            torch.get_device_module(device).set_rng_state(state, device)
        yield
