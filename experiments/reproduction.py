"""The functions that `python -m experiments` and `mercer reproduce` share: they run one or several experiments."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.claims import BROKEN, NOT_HELD, NOT_RUN, Verdict, average, spread
from experiments.kept import kept_report, records_of
from experiments.listed import verdicts
from experiments.report import Report, as_document, case_summaries, make_report, write_report
from experiments.runner import ROOT, Record, UsageError, cases_of, discover, load, mode, run

ALL = "all"
MEASURED = "measured"
MOST_MEASURED = 12
# Minutes on one core in quick and full mode (None: not yet run as a whole), so that users know them before a run.
MINUTES: dict[str, tuple[float, float | None]] = {
    "kernel_discriminant": (1.9, 20.0),
    "krepes": (2.9, 95.0),
    "krepes_as_printed": (1.0, 4.0),
    "manifold_linearizing_clustering": (2.2, 135.0),
    "precision_subspace_clustering": (0.8, 75.0),
    "rfm_and_ard": (4.0, 300.0),
}


@dataclass(frozen=True)
class Options:
    """How experiments are run; see `runner.run`. `time_limit` is in seconds, for all experiments together.

    With `kept`, the results of full runs that the repository keeps count as done.
    """

    quick: bool = False
    seeds: int | None = None
    only: str = ""
    fresh: bool = False
    time_limit: float | None = None
    kept: bool = False


@dataclass(frozen=True)
class Line:
    """A line of the table of all papers: a claim, or a measure of a paper without decided claims."""

    text: str
    paper: float | str | None
    mean: float | None
    spread: float | None
    status: str
    reason: str = ""


def listed(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return the name, the subject and the minutes (None if unknown) of every experiment."""
    made = []
    for name, line in discover(root).items():
        quick, full = MINUTES.get(name, (None, None))
        made.append({"name": name, "about": line, "quick_minutes": quick, "full_minutes": full})
    return made


def listed_verdicts() -> list[dict[str, Any]]:
    """Return every listed claim of the papers, with its verdict by the results that the repository keeps."""
    return [
        {
            "paper": verdict.claim.paper,
            "place": verdict.claim.place,
            "claim": verdict.claim.says,
            "printed": verdict.claim.printed,
            "ours": verdict.ours,
            "verdict": verdict.status,
            "reason": verdict.reason,
        }
        for verdict in verdicts()
    ]


def chosen(name: str, root: Path = ROOT) -> list[str]:
    """Return the experiments for a name, in which - may replace _; "all" stands for all of them."""
    known = discover(root)
    if name == ALL:
        return list(known)
    name = name.replace("-", "_")
    if name not in known:
        raise UsageError(f"unknown experiment {name!r}; the experiments are {sorted(known)}")
    return [name]


def reproduce(name: str, results: Path, options: Options, root: Path = ROOT) -> Report:
    """Run the missing runs of one experiment, judge its claims, and write the report."""
    experiment = load(name, root)
    outcome = run(
        experiment,
        results,
        quick=options.quick,
        seeds=options.seeds,
        only=options.only,
        fresh=options.fresh,
        time_limit=options.time_limit,
        known=known_records(name, options),
    )
    report = make_report(experiment, outcome, options.quick)
    write_report(report, results)
    return report


def known_records(name: str, options: Options) -> list[Record]:
    """Return the records of an experiment that the repository keeps, as far as the options let them count."""
    kept = kept_report(name) if options.kept and not options.quick else None
    records = [] if kept is None else records_of(kept)
    return [record for record in records if not options.fresh or options.only not in record["case"]]


def reproduce_each(
    names: Sequence[str],
    results: Path,
    options: Options,
    root: Path = ROOT,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, Report | str]]:
    """Yield each experiment with its report, or with the error that prevented it from running.

    The time limit holds for all experiments together. If there are several, those without a case that `only` selects
    are skipped.
    """
    start = clock()
    names = [name for name in names if len(names) == 1 or has_case(name, options, root)]
    if not names:
        raise UsageError(f"only={options.only!r} matches no case of any experiment")
    for name in names:
        print(f"{name}: {cost(name, options)}", file=sys.stderr)
        left = None if options.time_limit is None else max(0.0, options.time_limit - (clock() - start))
        try:
            yield name, reproduce(name, results, replace(options, time_limit=left), root)
        except (UsageError, ImportError, OSError) as error:
            if len(names) == 1:
                raise
            yield name, str(error)


def cost(name: str, options: Options) -> str:
    """Return the time that a run of all cases takes, in words; it takes less if results exist or `only` is given."""
    minutes = MINUTES.get(name, (None, None))[0 if options.quick else 1]
    if minutes is None:
        return "was not yet run as a whole, and may take hours of one core; a stopped run continues later"
    return f"about {minutes:.0f} min of one core" if minutes < 90 else f"about {minutes / 60:.0f} h of one core"


def has_case(name: str, options: Options, root: Path) -> bool:
    """Whether `only` selects a case of an experiment; True if it cannot be loaded, since its run reports the error."""
    if not options.only:
        return True
    try:
        return any(options.only in case.name for case in cases_of(load(name, root), options.quick, options.seeds))
    except ImportError:
        return True


def went_well(report: Report) -> bool:
    """Whether no run and no claim raised, and something was measured if data were missing; claims need not hold."""
    outcome = report.outcome
    measured = any("measures" in record for record in outcome.results.records.values())
    broken = any(verdict.status == BROKEN for verdict in report.verdicts)
    return not (outcome.failed or broken or (outcome.missing and not measured))


def remarks(report: Report) -> list[str]:
    """Return remarks on the runs that could not be made, that failed, or that were not started."""
    outcome = report.outcome
    made = [f"{count_of(count, 'run')} could not be made: {what}" for what, count in outcome.missing.items()]
    if outcome.remaining:
        made.append(f"time limit: {count_of(outcome.remaining, 'run')} remain; the same command continues")
    if outcome.failed:
        made.append(f"{count_of(outcome.failed, 'run')} failed; the same command tries them again")
    return made


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def lines_of(report: Report, *, not_run: bool = False) -> list[Line]:
    """Return the lines of a paper: its claims (those not run only with `not_run`), or measures if no claim was run.

    Known reasons come from full runs. A claim may fail for another reason in a quick run, so the line then says so.
    """
    made = [
        Line(v.claim.text, v.claim.paper, v.mean, v.spread, v.status, reason_of(v, report.quick))
        for v in report.verdicts
        if not_run or v.status != NOT_RUN
    ]
    if any(line.status != NOT_RUN for line in made):
        return made
    return made + measured_lines(report)


def reason_of(verdict: Verdict, quick: bool) -> str:
    from_full_runs = quick and verdict.status == NOT_HELD and verdict.claim.why
    return f"{verdict.reason} (from full runs)" if from_full_runs else verdict.reason


def measured_lines(report: Report) -> list[Line]:
    """Return lines with the first measure of each case in the order of cases, at most MOST_MEASURED of them."""
    made = []
    for summary in case_summaries(report):
        if summary["measures"]:
            measure, values = next(iter(summary["measures"].items()))
            if not any(isinstance(value, str) for value in values):
                made.append(Line(f"{summary['case']} ({measure})", None, average(values), spread(values), MEASURED))
    if len(made) > MOST_MEASURED:
        rest = len(made) - MOST_MEASURED
        made[MOST_MEASURED:] = [Line(f"and {rest} more in {report_name(report)}", None, None, None, MEASURED)]
    return made


def report_name(report: Report) -> str:
    """Return the name of the Markdown file that `write_report` writes."""
    return f"{report.experiment.name}-{mode(report.quick)}.md"


def not_run_count(report: Report) -> int:
    return sum(verdict.status == NOT_RUN for verdict in report.verdicts)


def as_documents(made: Mapping[str, Report | str], results: Path, quick: bool) -> dict[str, Any]:
    """Return everything that `reproduce_each` yielded as plain values, for JSON."""
    papers = []
    for report in made.values():
        if not isinstance(report, str):
            measured = [asdict(line) for line in measured_lines(report)]
            papers.append({**as_document(report), "measured": measured, "report": str(results / report_name(report))})
    errors = {name: report for name, report in made.items() if isinstance(report, str)}
    return {"mode": mode(quick), "results": str(results), "papers": papers, "errors": errors}
