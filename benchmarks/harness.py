"""Measures the time and memory of functions that compute the same thing, and judges claims about their ratios."""

import ast
import ctypes
import gc
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.runner import first_line, import_under, library_versions

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent
MB = 1e6
BUSY = 0.7
QUANTITIES = ("seconds", "memory")


class CheckFailed(RuntimeError):
    """Raised if the contestants did not compute the same thing, so that their times must not be compared."""


@dataclass(frozen=True)
class RatioClaim:
    """The claim that `slow` takes at least `at_least` times the seconds (or memory) of `fast`; `reach` is a goal."""

    text: str
    slow: str
    fast: str
    at_least: float
    of: str = "seconds"
    reach: float | None = None

    def __post_init__(self) -> None:
        if self.of not in QUANTITIES:
            raise ValueError(f"of must be one of {QUANTITIES}, got {self.of!r}")
        if self.reach is not None and self.reach <= self.at_least:
            raise ValueError(f"reach must be greater than at_least = {self.at_least}, got {self.reach}")


@dataclass(frozen=True)
class Benchmark:
    """Functions of the same data that should return the same answer.

    `setup(quick)` makes the data once. Each of the `contestants` gets the data and must not change them.
    `check(outputs)` gets what each returned, and raises unless they agree. A contestant whose package is not installed
    is skipped, and is not in the outputs.
    """

    name: str
    setup: Callable[[bool], Any]
    contestants: Mapping[str, Callable[[Any], Any]]
    claims: Sequence[RatioClaim] = ()
    check: Callable[[Mapping[str, Any]], None] | None = None

    def __post_init__(self) -> None:
        for claim in self.claims:
            for side in (claim.slow, claim.fast):
                if side not in self.contestants:
                    known = sorted(self.contestants)
                    raise ValueError(f"claim {claim.text!r} names {side!r}; the contestants are {known}")


@dataclass(frozen=True)
class Memory:
    """The peak bytes above those in use before the call (None: unknown), and how they were measured."""

    peak: float | None
    method: str

    @property
    def exact(self) -> bool:
        return self.method == "VmHWM"

    @property
    def megabytes(self) -> float | None:
        """The peak in MB where it is exact."""
        return self.peak / MB if self.exact and self.peak is not None else None


@dataclass(frozen=True)
class Measured:
    """All measurements of one benchmark; `missing` holds the contestants that were skipped, with the reason."""

    seconds: dict[str, list[float]]
    memory: dict[str, Memory] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """The measured ratio of a claim; `status` is held, reach (the goal is also met), not held or not measured."""

    claim: RatioClaim
    ratio: float | None
    status: str


def discover(root: Path = ROOT) -> dict[str, str]:
    """Return the names and first docstring lines of modules that assign BENCHMARK, without importing them."""
    return {path.stem: first_line(path) for path in sorted(root.glob("*.py")) if assigns_benchmark(path)}


def assigns_benchmark(path: Path) -> bool:
    """Whether a module assigns BENCHMARK at its top level; True if it cannot be parsed, so that it is listed."""
    try:
        statements = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        return True
    targets = [target for s in statements if isinstance(s, ast.Assign) for target in s.targets]
    targets += [s.target for s in statements if isinstance(s, ast.AnnAssign)]
    return any(isinstance(target, ast.Name) and target.id == "BENCHMARK" for target in targets)


def load(name: str, root: Path = ROOT) -> Benchmark:
    """Import one benchmark by the name of its module."""
    benchmark = import_under(root, "benchmarks", ROOT, name).BENCHMARK
    if benchmark.name != name:
        raise ValueError(f"{name}.py must define BENCHMARK with name {name!r}, got {benchmark.name!r}")
    return benchmark


def measure_time(
    benchmark: Benchmark, data: Any, repeats: int, clock: Callable[[], float] = time.perf_counter
) -> Measured:
    """Time all contestants round by round, so that changes of the machine's speed affect all of them.

    The first round is a warm-up, whose outputs are checked; `repeats` rounds follow. Garbage is collected before each
    contestant is timed.
    """
    outputs, missing = {}, {}
    for name, contestant in benchmark.contestants.items():
        try:
            outputs[name] = contestant(data)
        except ModuleNotFoundError as error:
            if (error.name or "mercer").partition(".")[0] == "mercer":  # a fault of ours, not an absent peer
                raise
            missing[name] = str(error)
    if benchmark.check is not None:
        try:
            benchmark.check(outputs)
        except Exception as error:
            raise CheckFailed(f"the contestants of {benchmark.name!r} do not agree: {error}") from error
    seconds: dict[str, list[float]] = {name: [] for name in outputs}
    outputs.clear()
    for _ in range(repeats):
        for name in seconds:
            gc.collect()
            start = clock()
            output = benchmark.contestants[name](data)
            seconds[name].append(clock() - start)
            del output
    return Measured(seconds, missing=missing)


def measure_memory(name: str, contestant: str, quick: bool, root: Path = ROOT) -> Memory:
    """Return the peak memory of one call in a fresh process, where no freed memory of other calls can be reused."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_memory_of_call, name, contestant, quick, root).result()


def _memory_of_call(name: str, contestant: str, quick: bool, root: Path) -> Memory:
    benchmark = load(name, root)
    call = benchmark.contestants[contestant]
    call(benchmark.setup(True))  # imports and thread pools only; a warm-up in full size would hide the memory
    data = benchmark.setup(quick)
    return peak_memory(lambda: call(data))


def peak_memory(call: Callable[[], Any]) -> Memory:
    """Run `call` and return its peak of resident memory above that just before it."""
    return with_peak_memory(call)[1]


def with_peak_memory(call: Callable[[], Any]) -> tuple[Any, Memory]:
    """Run `call`; return its answer, and its peak of resident memory above that just before it.

    On Linux the recorded peak can be reset, so the result is exact. On other systems the recorded peak can only rise.
    Its rise is then a lower bound, and if it does not rise, the memory is unknown.
    """
    give_back_freed_memory()
    if reset_high_water_mark():
        before = status_bytes("VmRSS")
        answer = call()
        return answer, Memory(float(max(status_bytes("VmHWM") - before, 0)), "VmHWM")
    if resource is None:
        return call(), Memory(None, "not measured")
    before = highest_ever()
    answer = call()
    rise = highest_ever() - before
    return answer, Memory(float(rise), "ru_maxrss") if rise > 0 else Memory(None, "not measured")


def give_back_freed_memory() -> None:
    """Return freed memory to the system, if the C library can; otherwise its reuse would not count as growth."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def reset_high_water_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return status_bytes("VmHWM") > 0 and status_bytes("VmRSS") > 0
    except (OSError, LookupError):
        return False


def status_bytes(entry: str) -> int:
    found = re.search(rf"^{entry}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise LookupError(f"no {entry} in /proc/self/status")
    return 1024 * int(found[1])


def highest_ever() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def judge(claim: RatioClaim, measured: Measured) -> Verdict:
    """Decide one claim by medians; memory decides only if it is exact, and counts as at least 1 MB because of noise."""
    if claim.of == "seconds":
        sides = [measured.seconds.get(name) for name in (claim.slow, claim.fast)]
        slow, fast = (statistics.median(side) if side else None for side in sides)
    else:
        found = [measured.memory.get(name) for name in (claim.slow, claim.fast)]
        peaks = [side.peak if side and side.exact else None for side in found]
        slow, fast = (None if peak is None else max(peak, MB) for peak in peaks)
    if slow is None or fast is None:
        return Verdict(claim, None, "not measured")
    ratio = slow / fast
    if claim.reach is not None and ratio >= claim.reach:
        return Verdict(claim, ratio, "reach")
    return Verdict(claim, ratio, "held" if ratio >= claim.at_least else "not held")


def load_average() -> float | None:
    """Return the load average of the last minute; above BUSY, times are not reliable."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def machine_facts() -> dict[str, Any]:
    """Return the facts that affect the results and identify nobody: cores, threads and versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = {}
    with suppress(ImportError):
        from threadpoolctl import threadpool_info

        threads = {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}
    if "torch" in sys.modules:
        threads["torch"] = sys.modules["torch"].get_num_threads()
    return {"cores": cores, "threads": threads, "system": sys.platform, "versions": library_versions()}
