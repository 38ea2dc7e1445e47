"""`python -m experiments`: list the experiments, or run one and report on its claims."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.claims import BROKEN
from experiments.report import make_report, print_report, write_report
from experiments.runner import ROOT, UsageError, discover, load, run


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def parse(argv: Sequence[str] | None, root: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m experiments", description="Put papers' claims to the test.")
    add = parser.add_argument
    add("name", nargs="?", help="the experiment; without it, they are listed")
    add("--quick", action="store_true", help="small settings, minutes; the full ones take up to six hours")
    add("--seeds", type=positive, metavar="N", help="seeds for every case, instead of the cases' own counts")
    add("--results", type=Path, default=root / "results", metavar="DIR", help="where journals and reports go")
    add("--fresh", action="store_true", help="forget earlier results (with --only: of those cases)")
    add("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    add("--time-limit", type=float, metavar="MINUTES", help="start nothing new after so long")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code 0: runs went well, whether claims hold or not; 1: a run or claim raised; 2: wrong call."""
    args = parse(argv, root)
    if args.name is None:
        for name, line in discover(root).items():
            print(f"{name}\n    {line}")
        return 0
    try:
        experiment = load(args.name.replace("-", "_"), root)
        limit = None if args.time_limit is None else 60 * args.time_limit
        outcome = run(
            experiment,
            args.results,
            quick=args.quick,
            seeds=args.seeds,
            only=args.only,
            fresh=args.fresh,
            time_limit=limit,
        )
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    report = make_report(experiment, outcome, args.quick)
    print_report(report)
    for path in write_report(report, args.results):
        print(f"written: {path}", file=sys.stderr)
    if outcome.remaining:
        print(f"time limit: {outcome.remaining} runs remain; the same command goes on", file=sys.stderr)
    if outcome.failed:
        print(f"{outcome.failed} runs failed; the same command tries them again", file=sys.stderr)
    return int(outcome.failed > 0 or any(verdict.status == BROKEN for verdict in report.verdicts))


if __name__ == "__main__":
    sys.exit(main())
