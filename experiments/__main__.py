"""`python -m experiments`: list the experiments, or run one or all and report on its claims."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.report import Report, print_report
from experiments.reproduction import Options, chosen, remarks, report_name, reproduce_each, went_well
from experiments.runner import ROOT, UsageError, discover


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def parse(argv: Sequence[str] | None, root: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m experiments", description="Put papers' claims to the test.")
    add = parser.add_argument
    add("name", nargs="?", help="the experiment, or all; without it, they are listed")
    add("--quick", action="store_true", help="small settings, minutes; the full ones take hours")
    add("--seeds", type=positive, metavar="N", help="seeds for every case, instead of the cases' own counts")
    add("--results", type=Path, default=root / "results", metavar="DIR", help="where journals and reports go")
    add("--fresh", action="store_true", help="forget earlier results (with --only: of those cases)")
    add("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    add("--kept", action="store_true", help="count the results that the repository keeps of full runs as done")
    add("--time-limit", type=float, metavar="MINUTES", help="start no further run after this time")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Return the exit code: 0 if no run and no claim raised, whether claims hold or not; 1 if one did; 2 if misused."""
    args = parse(argv, root)
    if args.name is None:
        for name, line in discover(root).items():
            print(f"{name}\n    {line}")
        return 0
    limit = None if args.time_limit is None else 60 * args.time_limit
    options = Options(args.quick, args.seeds, args.only, args.fresh, limit, args.kept)
    well = True
    try:
        for name, report in reproduce_each(chosen(args.name, root), args.results, options, root):
            well &= tell(name, report, args.results)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command continues from here", file=sys.stderr)
        return 130
    return int(not well)


def tell(name: str, report: Report | str, results: Path) -> bool:
    """Print the report of a paper and remarks on it; return whether no run and no claim raised."""
    if isinstance(report, str):
        print(f"error: {name}: {report}", file=sys.stderr)
        return False
    print_report(report)
    print(f"written: {results / report_name(report)}", file=sys.stderr)
    for remark in remarks(report):
        print(remark, file=sys.stderr)
    return went_well(report)


if __name__ == "__main__":
    sys.exit(main())
