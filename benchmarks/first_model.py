"""From a new clone to a report on a user's table, by the commands of the README: seconds of each command.

Run as `python -m benchmarks.first_model [--out DIR]`; `--all` does not run it. It clones the repository into a
temporary folder, writes a table there, and runs those commands of the README's command-line section that use this
table. The time of the installation depends on the network.
"""

import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.bounds import keep, load_at_start, print_claims, verdict
from benchmarks.harness import ROOT
from benchmarks.report_page import rented_flats
from experiments.report import print_table

MOST_MINUTES = 10.0
SECTION = "From the command line"
TABLE, TARGET, NEW_TABLE = "houses.csv", "price", "new.csv"
ROWS, NEW_ROWS = 2000, 50
# Commands on other files, photographs and customers, are not run.
OTHERS = ("photographs", "customers", "mercer explore")


def commands(readme: str) -> list[str]:
    """Return the commands of the section's first block that use the table, without comments."""
    section = readme.split(f"## {SECTION}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```\n(.*?)```", section, re.DOTALL)
    lines = [line.split("  #")[0].strip() for line in block[1].splitlines()] if block else []
    return [line for line in lines if line and not any(other in line for other in OTHERS)]


def walk(folder: Path) -> list[dict[str, float | str]]:
    """Clone the repository and run the commands in the clone; those after `source` use its environment."""
    clone, begin, steps = folder / "mercer", "", []
    todo = [(folder, f"git clone --quiet {ROOT.parent} mercer")]
    todo += [(clone, line) for line in commands((ROOT.parent / "README.md").read_text())]
    for place, line in todo:
        if line.startswith("source "):
            begin = f"{line} && "
            continue
        start = time.perf_counter()
        subprocess.run(["bash", "-c", begin + line], cwd=place, check=True)
        steps.append({"command": line, "seconds": time.perf_counter() - start})
        if place == folder:
            flats = rented_flats(ROWS + NEW_ROWS).rename(columns={"rent": TARGET})
            flats[:ROWS].to_csv(clone / TABLE, index=False)
            flats[ROWS:].drop(columns=TARGET).to_csv(clone / NEW_TABLE, index=False)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.first_model")
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="DIR")
    args = parser.parse_args()
    load = load_at_start()
    with tempfile.TemporaryDirectory() as name:
        steps = walk(Path(name))
    print_table("first_model", ("command", "seconds"), [(str(s["command"]), f"{s['seconds']:.1f}") for s in steps])
    minutes = sum(float(step["seconds"]) for step in steps) / 60.0
    claims = [verdict("minutes from a clean clone to a report", minutes, MOST_MINUTES)]
    print_claims(claims)
    keep(args.out, "first_model", load, steps=steps, claims=claims)


if __name__ == "__main__":
    main()
