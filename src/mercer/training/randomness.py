"""The random numbers of a training, which depend only on one seed and the number of the step: no generator is saved."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_of(seed: int, purpose: str, number: int = 0) -> int:
    """Return a seed for one purpose (such as the order of rows or the views of a step) at one epoch or step.

    The seed is a hash, since generators with neighboring seeds are not independent. torch's generator on the CPU uses
    32 bits of it, so that among 100 000 steps about one pair shares its random numbers, for different rows.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def generator_of(seed: int, purpose: str, number: int = 0) -> torch.Generator:
    """Return a generator on the CPU, also for trainings on other devices, so that all get the same numbers."""
    return torch.Generator().manual_seed(seed_of(seed, purpose, number))


# Dropout and the initialization of layers use torch's global generators, which belong to the whole process. With this
# lock, threads that train at the same time take turns. It is reentrant, since a network may be built inside the
# training of another one.
_GLOBAL_GENERATORS = threading.RLock()


@contextmanager
def global_chance_from(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators, which dropout uses, inside the block, and restore them after it.

    Random numbers inside the block do not depend on what was drawn before it or in another thread, and random numbers
    after the block do not depend on it. Only one thread is inside such a block at a time.
    """
    on_cpu = device.type == "cpu"
    with _GLOBAL_GENERATORS, torch.random.fork_rng(devices=[] if on_cpu else [device], device_type=device.type):
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        if not on_cpu:
            state = torch.Generator(device).manual_seed(seed).get_state()
            torch.get_device_module(device).set_rng_state(state, device)
        yield
