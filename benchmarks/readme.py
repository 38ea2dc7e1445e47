"""Write the tables of comparisons in README and docs from their files: `python -m benchmarks.readme [--take DIR]`.

The summaries of benchmarks are kept in `docs/comparisons`. `--take DIR` copies new ones from a folder with the results
of `python -m benchmarks tables`, `classes` or `representations`. Those of the UCI sets, of clusterings and of
embeddings on whole sets come from the reports of experiments in `docs/results`.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.cluster_tables import cluster_summaries
from benchmarks.embedding_tables import EMBEDDING_SECTIONS, embedding_summaries
from experiments.report import strict_json, write_atomically

HOME = Path(__file__).resolve().parents[1]
KEPT = HOME / "docs" / "comparisons"
# For each benchmark: its file, the name under which its summary is kept, and the line above the table.
SECTIONS = {
    "tables": "Numbers to predict, {tables} tables (`python -m benchmarks tables`); ratios are those of the RMSE:",
    "classes": "Classes to predict, {tables} tables (`python -m benchmarks classes`):",
    "representations": "Accuracy of a linear probe in %, means over seeds (`python -m benchmarks representations`):",
}
# Sections from tables of the report on the UCI sets: the beginning of the title, and the line above the table.
UCI_REPORT = HOME / "docs" / "results" / "rfm_and_ard-full.json"
UCI_SECTIONS = {"uci rmse": ("RMSE", "RMSE:"), "uci nll": ("NLL", "Negative log likelihood, for those that give one:")}
# The defaults of Mercer, and peers. The methods of the paper have their own page.
UCI_CONTESTANTS = (
    "GPRegressor()",
    "RFMRegressor()",
    "xRFM",
    "CatBoost",
    "CatBoost (uncertainty)",
    "NGBoost",
    "LightGBM",
    "GPyTorch",
    "scikit-learn GPR",
)
# Sections of clusterings, with the line above each table.
CLUSTER_SECTIONS = {
    "faces": "Extended Yale B, NMI / ARI (agreement with the true classes; 1 is perfect):",
    "subspaces elsewhere": "Other sets, NMI:",
    "manifolds": "Accuracy, means over draws:",
}
REPORTED = CLUSTER_SECTIONS | EMBEDDING_SECTIONS
# Sections on the page that explains concepts.
WHY = ("concepts", "borders", "kappa")
# The sections of each page.
PAGES = {
    "README.md": ("tables",),
    "docs/how-good.md": (*SECTIONS, *UCI_SECTIONS, *(name for name in REPORTED if name not in WHY)),
    "docs/why.md": WHY,
}


def uci_summary(report: dict[str, Any], title: str) -> dict[str, Any]:
    """Return a table of the report with a row for each set: the means only, with the lowest of each set in bold."""
    table = next(table for table in report["tables"] if table["title"].startswith(title))
    by_name = {row[0]: row for row in table["rows"]}
    names = [name for name in UCI_CONTESTANTS if name in by_name and not (title == "RMSE" and "uncertainty" in name)]
    rows = []
    for place, data in enumerate(table["columns"]):
        if place == 0:
            continue
        means = [by_name[name][place].split(" ")[0] for name in names]
        known = [float(mean) for mean in means if mean]
        rows.append([data, *(f"**{mean}**" if mean and float(mean) == min(known) else mean or "-" for mean in means)])
    return {"columns": names, "rows": rows}


def section(name: str, summary: dict[str, Any]) -> str:
    """Return a summary in Markdown: a line and a table."""
    head = ["", *summary["columns"]]
    rows = [head, ["---"] * len(head), *summary["rows"]]
    table = "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)
    if name in REPORTED:
        above = REPORTED[name]
    else:
        above = UCI_SECTIONS[name][1] if name in UCI_SECTIONS else SECTIONS[name].format(**summary)
    return f"{above}\n\n{table}"


def with_sections(text: str, summaries: dict[str, dict[str, Any]]) -> str:
    """Return a page in which the text between the marks of each section is replaced."""
    for name, summary in summaries.items():
        begin, end = f"<!-- benchmark: {name} -->", f"<!-- end of benchmark: {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), flags=re.DOTALL)
        found = pattern.search(text)
        if found is None:
            raise SystemExit(f"a page has no section between {begin} and {end}")
        before, after = text[: found.start()], text[found.end() :]
        text = f"{before}{begin}\n{section(name, summary)}\n{end}{after}"
    return text


def kept_summaries() -> dict[str, dict[str, Any]]:
    """Return the summaries in `docs/comparisons`, and those of the UCI sets, of clusterings and of embeddings."""
    report = json.loads(UCI_REPORT.read_text())
    kept = {name: json.loads((KEPT / f"{name}.json").read_text()) for name in SECTIONS}
    uci = {name: uci_summary(report, title) for name, (title, _) in UCI_SECTIONS.items()}
    return kept | uci | cluster_summaries() | embedding_summaries()


def merged(before: dict[str, Any], now: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of both summaries, grouped by set; the new rows replace all old rows of their sets."""
    if sorted(before["columns"]) != sorted(now["columns"]):
        raise SystemExit("the kept summary has other columns: measure all of its sets anew")
    order = [0, *(1 + before["columns"].index(name) for name in now["columns"])]
    again = {row[0] for row in now["rows"]}
    return [*([row[i] for i in order] for row in before["rows"] if row[0] not in again), *now["rows"]]


def main(argv: list[str] | None = None) -> int:
    """Copy new summaries if requested, and write the sections of the pages."""
    parser = argparse.ArgumentParser("python -m benchmarks.readme")
    parser.add_argument("--take", type=Path, metavar="DIR", help="the folder with the benchmarks' files")
    parser.add_argument("--label", default="2000", help="what follows the benchmark's name in its file (2000)")
    args = parser.parse_args(argv)
    if args.take is not None:
        for name in SECTIONS:
            files = [args.take / f"{name}-{args.label}.json", args.take / f"{name}.json"]
            there = [path for path in files if path.exists()]
            if not there:
                print(f"kept as it was: {name}, of which {args.take} has no file", file=sys.stderr)
                continue
            found = json.loads(there[0].read_text())
            kept = {**found["summary"], "machine": found["machine"]}
            if name == "representations":
                kept["rows"] = merged(json.loads((KEPT / f"{name}.json").read_text()), kept)
            write_atomically(KEPT / f"{name}.json", strict_json(kept))
    for page, names in PAGES.items():
        path, summaries = HOME / page, kept_summaries()
        write_atomically(path, with_sections(path.read_text(), {name: summaries[name] for name in names}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
