"""Write a page for each report of `mercer reproduce` into docs/results/, and one over all, without numbers by hand.

Reports of full runs in experiments/results/ are used first. If a paper was not run here, its report in docs/results/ is
used, which is part of the repository. `--keep` copies the former over the latter.
"""

import ast
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
# Longer texts, such as a whole spectrum, are only in the report, for figures.
LONGEST_TEXT = 120
PLACES = ("where", "the paper says", "printed", "ours", "verdict", "reason")


def found_reports(*folders: Path) -> dict[str, Path]:
    """Return the report of each experiment from the first folder that has one."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            found.setdefault(path.name.removesuffix(SUFFIX), path)
    return found


def number(value: Any, digits: int = 4) -> str:
    """Return a number with a few digits; a text is unchanged (such as "nan"), and None becomes an empty text."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.{digits}g}"


def shortened(text: str) -> str:
    """Return a text that is cut and ends in … if it is too long."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT].rsplit(' ', 1)[0]} …"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, with characters escaped that would end a cell."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(
        "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in line) + " |\n" for line in lines
    )


def claim_row(claim: dict[str, Any]) -> list[str]:
    """Return the cells of a claim: its text, the paper's number, ours with its spread, and the verdict."""
    count = len(claim["values"])
    spread = "" if claim["spread"] is None else f"± {number(claim['spread'], 2)}, {count} seeds"
    status = f"**{claim['status']}**" if claim["status"] in ("not held", "error") else claim["status"]
    return [claim["text"], number(claim["paper"]), number(claim["mean"]), spread, status, claim["reason"]]


def case_row(case: dict[str, Any]) -> list[str]:
    """Return the cells of a case: its name and the means of its measures."""
    measures = []
    for name, values in case["measures"].items():
        texts = [value for value in values if isinstance(value, str)]
        shown = shortened(", ".join(dict.fromkeys(texts))) if texts else number(sum(values) / len(values))
        measures.append(f"{name} {shown}")
    return [case["case"], f"{case['done']} of {case['seeds']}", f"{case['seconds']:.0f}", "; ".join(measures)]


def design(name: str) -> str:
    """Return the docstring of an experiment: what is run, what is smaller than in the paper, and why."""
    path = DOCS.parent / "experiments" / name / "experiment.py"
    if not path.exists():
        return ""
    text = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[2].strip()
    return f"## Design\n\n{text}\n" if text else ""


def origin(report: dict[str, Any]) -> str:
    """Return the commits and machines of the runs that record them."""
    found = []
    for name in ("commit", "machine"):
        named = dict.fromkeys(case.get(name, "") for case in report["cases"] if case["done"])
        texts = [text for text in named if text]
        if texts:
            found.append(f"{name} {' and '.join(texts)}" + (" (early lines say none)" if "" in named else ""))
    return f" Of {'; '.join(found)}." if found else ""


def figures_of(name: str) -> list[str]:
    """Return the figures of a paper, which `python -m experiments.NAME.figures` draws."""
    folder = DOCS / "figures" / "reproduction" / name
    return [
        f"![{path.stem.replace('-', ' ')}](../{path.relative_to(DOCS).as_posix()})\n"
        for path in sorted(folder.glob("*.png"))
    ]


def reproduction_page(reports: dict[str, dict[str, Any]]) -> str:
    """Return the page over all five papers: every claim with its verdict, and what the papers leave out."""
    sys.path.insert(0, str(DOCS.parent))
    from experiments.listed import left_out, verdicts

    found, titles = verdicts(reports), {name: report["title"] for name, report in reports.items()}
    counts = {status: sum(v.status == status for v in found) for status in ("held", "in part", "not held", "not run")}
    parts = [
        "# Reproduction report\n",
        f"The five papers make {len(found)} claims in tables, figures, text and appendices that can be checked. "
        + ", ".join(f"{count} {status}" for status, count in counts.items())
        + ". Verdicts come from the result files of this folder, or from a test of the library where a claim is one of "
        "mathematics. *In part* says how many of the comparisons behind a claim held.\n",
    ]
    missing = left_out()
    for name in dict.fromkeys(v.claim.paper for v in found):
        rows = []
        for v in found:
            if v.claim.paper == name:
                status = f"**{v.status}**" if v.status == "not held" else v.status
                rows.append([v.claim.place, v.claim.says, v.claim.printed, v.ours, status, v.reason])
        parts += [f"## {titles.get(name, name)}\n", markdown_table(PLACES, rows)]
        parts += figures_of(name)
        open_questions = [[each.what, each.taken] for each in missing if each.paper == name]
        if open_questions:
            parts += ["What the paper leaves out:\n", markdown_table(("not said", "taken"), open_questions)]
    return "\n".join(parts)


def page(report: dict[str, Any]) -> str:
    """Return the page of one report."""
    claims, name = report["claims"], report["experiment"]
    counts = {status: sum(claim["status"] == status for claim in claims) for status in ("held", "not held")}
    versions = ", ".join(f"{library} {' and '.join(found)}" for library, found in report["versions"].items())
    parts = [
        f"# {report['title']}\n",
        f"Of {len(claims)} claims {counts['held']} held and {counts['not held']} did not. "
        f"`mercer reproduce {name}` runs them again. Measured with {versions}.{origin(report)}\n",
        design(name),
        "## Claims\n",
        markdown_table(("claim", "paper", "ours", "spread", "held?", "reason"), [claim_row(claim) for claim in claims]),
    ]
    if report["remaining"]:
        parts.append(f"{report['remaining']} runs remain to be done.\n")
    for what, count in report.get("missing", {}).items():
        parts.append(f"{count} runs could not be made where this was measured: {what}.\n")
    for table in report.get("tables", ()):  # the first reports had none
        parts += [f"## {table['title']}\n", markdown_table(table["columns"], table["rows"])]
    cases = [case_row(case) for case in report["cases"] if case["done"]]
    parts += ["## Cases\n", "Means over seeds of all that was measured.\n"]
    parts.append(markdown_table(("case", "seeds", "seconds", "measures"), cases))
    return "\n".join(parts)


def main() -> None:
    """Write all pages; with --keep also copy the reports from which they are made."""
    for old in KEPT.glob("*.md"):
        old.unlink()
    if "--keep" in sys.argv:
        for path in found_reports(FRESH).values():
            shutil.copyfile(path, KEPT / path.name)
    reports = {}
    for name, path in found_reports(FRESH, KEPT).items():
        reports[name] = json.loads(path.read_text())
        (KEPT / f"{name}.md").write_text(page(reports[name]))
        print(f"results/{name}.md from {path.relative_to(DOCS.parent)}")
    (KEPT / "all-claims.md").write_text(reproduction_page(reports))
    print("results/all-claims.md from all of them")


if __name__ == "__main__":
    main()
