"""`python -m benchmarks.readme [--take DIR]`: the README's comparisons on tables, from the files of their benchmarks.

The summaries that the README shows are kept in `docs/comparisons`; `--take DIR` takes new ones over from a folder in
which `python -m benchmarks tables` and `python -m benchmarks classes` left theirs.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from experiments.report import strict_json, write_atomically

HOME = Path(__file__).resolve().parents[1]
KEPT = HOME / "docs" / "comparisons"
# The file of a benchmark, the name under which its summary is kept, and what the README says above the table.
SECTIONS = {
    "tables": "Numbers to predict, {tables} tables (`python -m benchmarks tables`); ratios are those of the RMSE:",
    "classes": "Classes to predict, {tables} tables (`python -m benchmarks classes`):",
}


def section(name: str, summary: dict[str, Any]) -> str:
    """Return a summary as the README shows it: a line and a table."""
    head = ["", *summary["columns"]]
    rows = [head, ["---"] * len(head), *summary["rows"]]
    table = "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)
    return f"{SECTIONS[name].format(**summary)}\n\n{table}"


def with_sections(text: str, summaries: dict[str, dict[str, Any]]) -> str:
    """Return the README with everything between the marks of each section written anew."""
    for name, summary in summaries.items():
        begin, end = f"<!-- benchmark: {name} -->", f"<!-- end of benchmark: {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), flags=re.DOTALL)
        found = pattern.search(text)
        if found is None:
            raise SystemExit(f"README.md has no section between {begin} and {end}")
        before, after = text[: found.start()], text[found.end() :]
        text = f"{before}{begin}\n{section(name, summary)}\n{end}{after}"
    return text


def kept_summaries() -> dict[str, dict[str, Any]]:
    """Return the summaries in `docs/comparisons`."""
    return {name: json.loads((KEPT / f"{name}.json").read_text()) for name in SECTIONS}


def main(argv: list[str] | None = None) -> int:
    """Take summaries over if asked to, and write the README's sections."""
    parser = argparse.ArgumentParser("python -m benchmarks.readme")
    parser.add_argument("--take", type=Path, metavar="DIR", help="the folder with the benchmarks' files")
    parser.add_argument("--label", default="2000", help="what follows the benchmark's name in its file (2000)")
    args = parser.parse_args(argv)
    if args.take is not None:
        for name in SECTIONS:
            found = json.loads((args.take / f"{name}-{args.label}.json").read_text())
            kept = {**found["summary"], "machine": found["machine"]}
            write_atomically(KEPT / f"{name}.json", strict_json(kept))
    readme = HOME / "README.md"
    write_atomically(readme, with_sections(readme.read_text(), kept_summaries()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
