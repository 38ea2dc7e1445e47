"""Write a page of results for each report of `mercer reproduce` into docs/results/; no number is typed.

Reports of full runs in experiments/results/ come first, those in docs/results/, which are part of the repository, stand
in where a paper was not run here. `--keep` copies the former over the latter.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
KEPT = DOCS / "results"
FRESH = DOCS.parent / "experiments" / "results"
SUFFIX = "-full.json"
# Longer texts, such as a whole spectrum, are for figures; the report has them.
LONGEST_TEXT = 120


def found_reports(*folders: Path) -> dict[str, Path]:
    """Return the report of each experiment, from the first folder that has one."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            found.setdefault(path.name.removesuffix(SUFFIX), path)
    return found


def number(value: Any, digits: int = 4) -> str:
    """Return a number in a few digits, a text as it is ("nan" is one), nothing for None."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.{digits}g}"


def shortened(text: str) -> str:
    """Return a text that ends in … where it was too long."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT].rsplit(' ', 1)[0]} …"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; what would end a cell is escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(
        "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in line) + " |\n" for line in lines
    )


def claim_row(claim: dict[str, Any]) -> list[str]:
    """Return what was claimed, by whom with which number, ours with its spread, and what came of it."""
    count = len(claim["values"])
    spread = "" if claim["spread"] is None else f"± {number(claim['spread'], 2)}, {count} seeds"
    status = f"**{claim['status']}**" if claim["status"] in ("not held", "error") else claim["status"]
    return [claim["text"], number(claim["paper"]), number(claim["mean"]), spread, status, claim["reason"]]


def case_row(case: dict[str, Any]) -> list[str]:
    """Return the means of all that a case measured."""
    measures = []
    for name, values in case["measures"].items():
        texts = [value for value in values if isinstance(value, str)]
        shown = shortened(", ".join(dict.fromkeys(texts))) if texts else number(sum(values) / len(values))
        measures.append(f"{name} {shown}")
    return [case["case"], f"{case['done']} of {case['seeds']}", f"{case['seconds']:.0f}", "; ".join(measures)]


def page(report: dict[str, Any]) -> str:
    """Return the page of one report."""
    claims, name = report["claims"], report["experiment"]
    counts = {status: sum(claim["status"] == status for claim in claims) for status in ("held", "not held")}
    versions = ", ".join(f"{library} {' and '.join(found)}" for library, found in report["versions"].items())
    parts = [
        f"# {report['title']}\n",
        f"Of {len(claims)} claims {counts['held']} held and {counts['not held']} did not. "
        f"`mercer reproduce {name}` runs them again. Measured with {versions}.\n",
        "## Claims\n",
        markdown_table(("claim", "paper", "ours", "spread", "held?", "reason"), [claim_row(claim) for claim in claims]),
    ]
    if report["remaining"]:
        parts.append(f"{report['remaining']} runs remain to be done.\n")
    for table in report.get("tables", ()):  # the first reports had none
        parts += [f"## {table['title']}\n", markdown_table(table["columns"], table["rows"])]
    cases = [case_row(case) for case in report["cases"] if case["done"]]
    parts += ["## Cases\n", "Means over seeds of all that was measured.\n"]
    parts.append(markdown_table(("case", "seeds", "seconds", "measures"), cases))
    return "\n".join(parts)


def main() -> None:
    """Write all pages anew, and with --keep keep the reports they are made of."""
    for old in KEPT.glob("*.md"):
        old.unlink()
    if "--keep" in sys.argv:
        for path in found_reports(FRESH).values():
            shutil.copyfile(path, KEPT / path.name)
    for name, path in found_reports(FRESH, KEPT).items():
        (KEPT / f"{name}.md").write_text(page(json.loads(path.read_text())))
        print(f"results/{name}.md from {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
