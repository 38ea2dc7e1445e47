"""For benchmarks with a bound and no peer, which run by themselves: verdicts, their table, and the file they leave."""

import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import BUSY, load_average, machine_facts
from experiments.report import print_table, strict_json, write_atomically


def verdict(claim: str, value: float, at_most: float) -> dict[str, Any]:
    """Return whether a value is within its bound."""
    return {"claim": claim, "value": value, "at_most": at_most, "status": "held" if value <= at_most else "not held"}


def load_at_start() -> float | None:
    """Return the load average, with a warning if the times would not be to be trusted."""
    load = load_average()
    if load is not None and load > BUSY:
        print(f"warning: the load average is {load:.2f}: the times are not to be trusted", file=sys.stderr)
    return load


def print_claims(claims: list[dict[str, Any]]) -> None:
    """Print the verdicts, with the exponent of growth where there is one."""
    rows = [
        (
            each["claim"],
            f"{each['value']:.3g}",
            f"{each['at_most']:g}",
            f"{each['exponent']:.2f}" if "exponent" in each else "",
            each["status"],
        )
        for each in claims
    ]
    print_table("Claims", ("claim", "value", "at most", "exponent", "status"), rows)


def keep(folder: Path, name: str, load: float | None, **found: Any) -> None:
    """Write what was found, with facts of the machine, to a file of that name."""
    path = folder / f"{name}.json"
    facts = {"machine": machine_facts(), "load_before": load}
    write_atomically(path, strict_json({"benchmark": name.split("-")[0], **found, **facts}))
    print(f"written: {path}", file=sys.stderr)
