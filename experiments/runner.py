"""Runs the cases of an experiment and writes a journal line after each, so that a killed run can be resumed."""

import ast
import copy
import functools
import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TextIO

from experiments.claims import Claim, Results, Table

try:
    import fcntl
except ImportError:  # Windows has no such lock, so two runs at once are not refused there.
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent
PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "torch")
Record = dict[str, Any]
# A run that raises one of these needs data or a library that is not available; this does not count as a failure.
MISSING = (ConnectionError, ModuleNotFoundError)


class UsageError(ValueError):
    """A wrong use of the command, in contrast to an error in an experiment."""


@dataclass(frozen=True)
class Case:
    """One setting of an experiment: `run(settings, seed)` returns measures by name, for seed = 0 ... seeds - 1.

    `needs` is the name of a module without which the case cannot be run.
    """

    name: str
    run: Callable[[dict[str, Any], int], Mapping[str, float | str]]
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: int = 1
    needs: str = ""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds of case {self.name!r} must be at least 1, got {self.seeds}")

    @property
    def is_possible(self) -> bool:
        """Whether the module that it needs is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    @property
    def key(self) -> str:
        """The hash of the settings; journal lines that were written under other settings are ignored."""
        try:
            return settings_key(self.settings)
        except TypeError as error:
            message = f"settings of case {self.name!r} must be JSON, got {self.settings!r}: {error}"
            raise TypeError(message) from error


def settings_key(settings: Mapping[str, Any]) -> str:
    """Return the hash of settings, which must be JSON."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Experiment:
    """The experiment of a paper: `cases(quick)` returns the cases to run, and `claims` what their results should show.

    `tables`, if given, makes additional tables from the results; cells without a result stay empty.
    """

    name: str
    title: str
    cases: Callable[[bool], Sequence[Case]]
    claims: Sequence[Claim] = ()
    tables: Callable[[Results], Sequence[Table]] | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of `run`: the results of the cases, the number of failed runs, and the number not started.

    `missing` maps each library or data set that was not available to the number of runs that could not be made.
    `cases` does not include the cases that were skipped because a module is not installed.
    """

    cases: Sequence[Case]
    results: Results
    failed: int
    remaining: int
    missing: Mapping[str, int] = field(default_factory=dict)


def discover(root: Path = ROOT) -> dict[str, str]:
    """Return the names of experiments with their first docstring lines, which are read without importing anything."""
    return {path.parent.name: first_line(path) for path in sorted(root.glob("*/experiment.py"))}


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, or the error if the file cannot be parsed."""
    try:
        return (ast.get_docstring(ast.parse(path.read_bytes())) or "").partition("\n")[0]
    except (SyntaxError, ValueError) as error:
        return f"(cannot be read: {error})"


def import_under(root: Path, package: str, home: Path, module: str) -> ModuleType:
    """Import `module` of `package` from the folder `root`; if this is not its `home`, under a name of its own."""
    root = root.resolve()
    if root != home:
        package = f"_{package}_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
        if package not in sys.modules:
            stand_in = ModuleType(package)
            stand_in.__path__ = [str(root)]
            sys.modules[package] = stand_in
        importlib.invalidate_caches()
    return importlib.import_module(f"{package}.{module}")


def load(name: str, root: Path = ROOT) -> Experiment:
    """Import one experiment by the name of its folder."""
    known = discover(root)
    if name not in known:
        raise UsageError(f"unknown experiment {name!r}; the experiments are {sorted(known)}")
    module = import_under(root, "experiments", ROOT, f"{name}.experiment")
    experiment = getattr(module, "EXPERIMENT", None)
    if experiment is None or experiment.name != name:
        found = "no EXPERIMENT" if experiment is None else f"EXPERIMENT.name = {experiment.name!r}"
        raise ValueError(f"{name}/experiment.py must define EXPERIMENT with name {name!r}, got {found}")
    return experiment


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that affect the results, without importing them."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


@functools.cache
def commit() -> str:
    """Return the commit of the source tree, with a + if files differ from it; empty if there is no repository."""

    def git(*arguments: str) -> str:
        made = subprocess.run(["git", *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=True)
        return made.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "experiments")
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> str:
    """Return the system, the processor type and the number of cores, without which times mean little."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def read_records(file: BinaryIO) -> list[Record]:
    """Return the records of all complete lines of a journal, and cut off an incomplete last line, left by a kill."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        file.truncate(len(whole))
    records = []
    for line in whole.splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # a damaged line, for example after a power failure: the run is done again
            continue
        if isinstance(record, dict) and "case" in record:
            records.append(record)
    return records


@contextmanager
def open_journal(path: Path) -> Iterator[tuple[list[Record], Callable[[Record], None], BinaryIO]]:
    """Open and lock a journal; give its records, a function that appends a record to disk, and the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = f"another run is writing {path.name}; wait for it or choose another results folder"
                raise UsageError(message) from error

        def append(record: Record) -> None:
            try:
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error

        yield read_records(file), append, file


def latest(records: Sequence[Record], cases: Sequence[Case]) -> dict[tuple[str, int], Record]:
    """Return the last record of each (case, seed) that was made with the present settings of the case."""
    keys = {case.name: case.key for case in cases}
    seeds = {case.name: case.seeds for case in cases}
    found: dict[tuple[str, int], Record] = {}
    for record in records:
        name = record["case"]
        if record.get("dropped"):
            found = {pair: kept for pair, kept in found.items() if pair[0] != name}
        elif keys.get(name) == record["key"] and record["seed"] < seeds[name]:
            found[name, record["seed"]] = record
    return found


def plain_measures(measures: Mapping[str, Any]) -> dict[str, float | str]:
    """Convert measures to Python numbers and text; NumPy and PyTorch scalars are accepted, anything else raises."""
    plain = {}
    for name, value in measures.items():
        scalar = value.item() if hasattr(value, "item") else value
        if not isinstance(scalar, (int, float, str)):
            raise TypeError(f"measure {name!r} must be a number or text, got {type(value).__name__}")
        plain[str(name)] = scalar if isinstance(scalar, str) else float(scalar)
    return plain


def run_case(case: Case, seed: int, clock: Callable[[], float], progress: TextIO) -> Record:
    """Run one case with one seed and return its journal line, which holds either the measures or the error.

    The traceback of an error is printed to `progress`, unless data or a library was missing.
    """
    record: Record = {"case": case.name, "key": case.key, "seed": seed, "settings": case.settings}
    start = clock()
    try:
        record["measures"] = plain_measures(case.run(copy.deepcopy(case.settings), seed))
    except MISSING as error:
        record |= {"error": f"{type(error).__name__}: {error}", "missing": str(error)}
    except Exception as error:
        print(file=progress)  # the progress line is still open
        traceback.print_exc(file=progress)
        record["error"] = f"{type(error).__name__}: {error}"
    seconds = round(clock() - start, 3)
    return {**record, "seconds": seconds, "versions": library_versions(), "commit": commit(), "machine": machine()}


def cases_of(experiment: Experiment, quick: bool, seeds: int | None) -> list[Case]:
    """Return the cases of a mode, all with `seeds` seeds if given; raise if names repeat, as results go by name."""
    cases = [case if seeds is None else replace(case, seeds=seeds) for case in experiment.cases(quick)]
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise ValueError(f"case names of {experiment.name!r} must differ, got {names}")
    return cases


def run(
    experiment: Experiment,
    results: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: str = "",
    fresh: bool = False,
    time_limit: float | None = None,
    known: Sequence[Record] = (),
    clock: Callable[[], float] = time.monotonic,
    progress: TextIO | None = None,
) -> Outcome:
    """Run every (case, seed) that has no result yet; runs that failed before are repeated.

    `only` selects the cases whose name contains it, and `fresh` discards their earlier results. After `time_limit`
    seconds no further run is started. Cases that need a module that is not installed are skipped. `known` holds records
    of other runs, which count if the journal has none. `progress` is stderr by default.
    """
    progress = progress or sys.stderr
    cases = cases_of(experiment, quick, seeds)
    chosen = [case for case in cases if only in case.name]
    if not chosen:
        raise UsageError(f"only={only!r} matches no case; the cases are {[case.name for case in cases]}")
    start, failed, started = clock(), 0, 0
    missing: Counter[str] = Counter()
    with open_journal(results / f"{experiment.name}-{mode(quick)}.jsonl") as (records, append, file):
        if fresh and len(chosen) == len(cases):
            file.truncate(0)
            records.clear()
        elif fresh:  # A line is appended that drops the case: a kill while rewriting would lose the other cases.
            for case in chosen:
                records.append({"case": case.name, "dropped": True})
                append(records[-1])
        found = latest([*known, *records], cases)
        unfinished = [
            (case, seed)
            for case in cases
            for seed in range(case.seeds)
            if "measures" not in found.get((case.name, seed), {})
        ]
        left_out = {case.name for case, _ in unfinished if not case.is_possible}
        wanted = [(case, seed) for case, seed in unfinished if case in chosen]
        missing.update(f"{case.needs} is not installed" for case, _ in wanted if case.name in left_out)
        todo = [(case, seed) for case, seed in wanted if case.name not in left_out]
        for case, seed in todo:
            if time_limit is not None and clock() - start >= time_limit:
                break
            started += 1
            print(f"[{started}/{len(todo)}] {case.name}, seed {seed} ...", end="", file=progress, flush=True)
            record = found[case.name, seed] = run_case(case, seed, clock, progress)
            append(record)
            if "missing" in record:
                missing[record["missing"]] += 1
            failed += "error" in record and "missing" not in record
            print(
                f" {record.get('error', 'done')} in {record['seconds']:.1f} s, {clock() - start:.0f} s in all",
                file=progress,
                flush=True,
            )
    gathered = Results({case.name: case.seeds for case in cases}, found)
    told = [case for case in cases if case.name not in left_out]
    return Outcome(told, gathered, failed, len(todo) - started, missing)


def mode(quick: bool) -> str:
    return "quick" if quick else "full"
