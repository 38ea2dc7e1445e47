"""Functions shared by benchmarks with their own command lines: options, verdicts, the table of claims, and the file."""

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import BUSY, ROOT, load_average, machine_facts
from experiments.report import print_table, strict_json, write_atomically


def verdict(
    claim: str, value: float | None, at_most: float | None = None, *, at_least: float | None = None
) -> dict[str, Any]:
    """Return the verdict on whether a value is within its bound, one of the two; None is an unknown value."""
    held = value is not None and (value <= at_most if at_most is not None else value >= at_least)  # type: ignore[operator]
    status = "not measured" if value is None else "held" if held else "not held"
    bound = {"at_most": at_most} if at_most is not None else {"at_least": at_least}
    return {"claim": claim, "value": value, **bound, "status": status}


def ratio(value: float | None, base: float | None) -> float | None:
    """Return value / base, or None if one of them was not measured."""
    return None if value is None or base is None else value / base


def text(value: float | None, digits: int = 3) -> str:
    """Return a number as a table cell, empty if it was not measured."""
    return "" if value is None else f"{value:.{digits}g}"


def options(name: str, quick: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all have; `quick` is the help text of `--quick`."""
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="DIR", help="where the JSON goes")
    return parser


def file_name(name: str, args: argparse.Namespace) -> str:
    """Return the name of the results file of a run; quick results have a separate file."""
    return f"{name}-quick" if args.quick else name


def load_at_start() -> float | None:
    """Return the load average, and warn if the machine is too busy for reliable times."""
    load = load_average()
    if load is not None and load > BUSY:
        print(f"warning: the load average is {load:.2f}: the times are not to be trusted", file=sys.stderr)
    return load


def print_claims(claims: list[dict[str, Any]]) -> None:
    """Print the verdicts, with the exponent of growth if any has one."""
    growing = any("exponent" in each for each in claims)
    rows = [
        (
            each["claim"],
            text(each["value"]),
            f"at most {each['at_most']:g}" if "at_most" in each else f"at least {each['at_least']:g}",
            *([f"{each['exponent']:.2f}" if "exponent" in each else ""] if growing else []),
            each["status"],
        )
        for each in claims
    ]
    print_table("Claims", ("claim", "value", "bound", *(["exponent"] if growing else []), "status"), rows)


def keep(folder: Path, name: str, load: float | None, **found: Any) -> None:
    """Write the results, with facts about the machine, to a file of this name."""
    path = folder / f"{name}.json"
    facts = {"machine": machine_facts(), "load_before": load}
    write_atomically(path, strict_json({"benchmark": name.split("-")[0], **found, **facts}))
    print(f"written: {path}", file=sys.stderr)
