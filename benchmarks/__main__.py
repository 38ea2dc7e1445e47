"""`python -m benchmarks`: list the benchmarks, or run one and report times, memory and claims."""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    BUSY,
    MB,
    ROOT,
    Benchmark,
    CheckFailed,
    Measured,
    Memory,
    Verdict,
    discover,
    judge,
    load,
    load_average,
    machine_facts,
    measure_memory,
    measure_time,
)
from experiments.report import print_table, strict_json, write_atomically
from experiments.runner import first_line

# Benchmarks whose contestants do not compute the same thing, such as predictions. They have their own command lines,
# and `--all` does not run them.
WITH_OPTIONS_OF_THEIR_OWN = (
    "busy_neighbor",
    "categories",
    "classes",
    "cluster",
    "clustering",
    "covertype_rows",
    "discriminant",
    "distributions",
    "explore",
    "fit_time",
    "gp_classifier",
    "importances",
    "large_table",
    "representations",
    "table_models",
    "tables",
    "tangent_images",
    "time_limits",
    "toys",
)
COLUMNS = ("contestant", "median s", "min s", "spread", "ratio to first", "peak MB")


def measure(benchmark: Benchmark, repeats: int, quick: bool, root: Path = ROOT) -> Measured:
    """Measure the times of all contestants in turn, then the memory of each in a process of its own."""
    measured = measure_time(benchmark, benchmark.setup(quick), repeats)
    memory = {name: measure_memory(benchmark.name, name, quick, root) for name in measured.seconds}
    return replace(measured, memory=memory)


def summary(measured: Measured) -> list[dict[str, Any]]:
    """Return for each contestant the median, minimum and inter-quartile range of its seconds, and its peak bytes."""
    entries: list[dict[str, Any]] = []
    for name, seconds in measured.seconds.items():
        quarters = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else None
        memory = measured.memory.get(name, Memory(None, "not measured"))
        entries.append(
            {
                "contestant": name,
                "median": statistics.median(seconds),
                "min": min(seconds),
                "spread": quarters[2] - quarters[0] if quarters else None,
                "seconds": seconds,
                "peak_bytes": memory.peak,
                "memory_by": memory.method,
            }
        )
    return entries + [{"contestant": name, "missing": reason} for name, reason in measured.missing.items()]


def rows(entries: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the summary as text; a peak that is only a lower bound is marked with ≥."""
    shown: list[tuple[str, ...]] = []
    for entry in entries:
        if "missing" in entry:
            shown.append((entry["contestant"], "not installed", "", "", "", ""))
            continue
        spread, peak = entry["spread"], entry["peak_bytes"]
        bound = "" if entry["memory_by"] == "VmHWM" else "≥ "
        ratio = entry["median"] / entries[0]["median"]
        shown.append(
            (
                entry["contestant"],
                f"{entry['median']:.4g}",
                f"{entry['min']:.4g}",
                "" if spread is None else f"{spread:.2g}",
                f"{ratio:.3g}",
                "not measured" if peak is None else f"{bound}{peak / MB:.1f}",
            )
        )
    return shown


def claim_rows(verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    return [
        (
            v.claim.text,
            f"{v.claim.slow} / {v.claim.fast}, {v.claim.of}",
            f"{v.claim.at_least:g}",
            "" if v.claim.reach is None else f"{v.claim.reach:g}",
            "" if v.ratio is None else f"{v.ratio:.3g}",
            v.status,
        )
        for v in verdicts
    ]


def run(
    name: str,
    *,
    repeats: int = 7,
    quick: bool = False,
    out: Path | None = None,
    root: Path = ROOT,
    load_before: float | None = None,
) -> Path:
    """Measure one benchmark, print the results and write them as JSON; quick results have a separate file."""
    benchmark = load(name, root)
    measured = measure(benchmark, repeats, quick, root)
    entries, verdicts = summary(measured), [judge(claim, measured) for claim in benchmark.claims]
    mode = "quick" if quick else "full"
    print_table(f"{name} ({mode}, {repeats} repeats)", COLUMNS, rows(entries))
    if verdicts:
        print_table("Claims", ("claim", "of", "at least", "reach", "ratio", "status"), claim_rows(verdicts))
    claims = [{**vars(v.claim), "ratio": v.ratio, "status": v.status} for v in verdicts]
    busy = load_before is not None and load_before > BUSY
    path = (out or root / "results") / (f"{name}-quick.json" if quick else f"{name}.json")
    write_atomically(
        path,
        strict_json(
            {
                "benchmark": name,
                "mode": mode,
                "repeats": repeats,
                "contestants": entries,
                "claims": claims,
                "machine": machine_facts(),
                "load_before": load_before,
                "machine_was_busy": busy,
            }
        ),
    )
    return path


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Speed and memory, side by side.")
    parser.add_argument("name", nargs="?", help="the benchmark; without it, they are listed")
    parser.add_argument("--all", action="store_true", help="every benchmark, one after the other")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="rounds after the warm-up (7)")
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the JSON goes (benchmarks/results)")
    args = parser.parse_args(argv)
    if args.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {args.repeats}")
    if args.all and args.name:
        parser.error(f"--all runs every benchmark, got {args.name!r} besides")
    return args


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Return the exit code: 0 if measured, whether claims hold or not; 1 if contestants disagree; 2 if misused."""
    words = list(sys.argv[1:] if argv is None else argv)
    own = {
        name: first_line(root / f"{name}.py") for name in WITH_OPTIONS_OF_THEIR_OWN if (root / f"{name}.py").exists()
    }
    if words and words[0] in own:
        return import_module(f"benchmarks.{words[0]}").main(words[1:])
    args = parse(argv)
    known = discover(root)
    if args.name is None and not args.all:
        for name, line in (known | own).items():
            print(f"{name}\n    {line}")
        return 0
    if args.name is not None and args.name not in known:
        print(f"error: unknown benchmark {args.name!r}; the benchmarks are {sorted(known | own)}", file=sys.stderr)
        return 2
    load_before = load_average()  # measured once, since the first benchmark adds load itself
    if load_before is not None and load_before > BUSY:
        print(
            f"warning: the load average is {load_before:.2f}, above {BUSY}: the machine is busy and the"
            " times are not to be trusted",
            file=sys.stderr,
        )
    failed = 0
    for name in known if args.all else [args.name]:
        try:
            path = run(name, repeats=args.repeats, quick=args.quick, out=args.out, root=root, load_before=load_before)
            print(f"written: {path}", file=sys.stderr)
        except CheckFailed as error:
            failed += 1
            print(f"error: {error}", file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
