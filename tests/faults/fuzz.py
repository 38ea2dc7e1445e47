"""Damage files of models, checkpoints and concepts for so long.

python -m tests.faults.fuzz --seconds 600 [--seed 0] [--count N] [--only NAME]
"""

import argparse
import collections
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.faults.checkpoints import judged_checkpoint, saved_checkpoint
from tests.faults.concept_files import judged_concepts, mutate_concepts, saved_concepts
from tests.faults.models import MAKERS, saved
from tests.faults.mutations import dice_of, mutate_checkpoint, mutate_model
from tests.faults.outcomes import judged

NAMES = [*MAKERS, "checkpoint", "checkpoint", "concepts", "concepts"]
JUDGES = {"checkpoint": judged_checkpoint, "concepts": judged_concepts}


def damaged(seed):
    """Return the name of a model, and its file with the damage of that seed."""
    dice, name = dice_of(seed), NAMES[seed % len(NAMES)]
    if name == "checkpoint":
        return name, mutate_checkpoint(saved_checkpoint(), dice)
    if name == "concepts":
        return name, mutate_concepts(saved_concepts(), dice)
    return name, mutate_model(saved(name), dice)


def outcome_of(seed, folder):
    """Return the name of a model, and what came of its file with the damage of that seed."""
    name, data = damaged(seed)
    return name, JUDGES.get(name, judged)(name, data, Path(folder) / "damaged")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--count", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0, help="of the first damage; the next ones follow")
    parser.add_argument("--only", default="", help="models whose name begins so")
    options = parser.parse_args()
    found, bad, slowest = collections.Counter(), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        outcome_of(NAMES.index("checkpoint"), folder)
        assert judged_concepts("concepts", saved_concepts(), Path(folder) / "whole") == "works"
        for name in MAKERS:
            assert judged(name, saved(name), Path(folder) / "whole") == "works", name
        end, seed = time.monotonic() + options.seconds, options.seed
        while time.monotonic() < end and (options.count is None or seed < options.seed + options.count):
            if not NAMES[seed % len(NAMES)].startswith(options.only):
                seed += 1
                continue
            start = time.monotonic()
            try:
                name, outcome = outcome_of(seed, folder)
            except Exception:
                name, outcome = "?", "bad: " + traceback.format_exc()
            slowest = max(slowest, time.monotonic() - start)
            found[outcome.split(":")[0]] += 1
            if outcome.startswith("bad"):
                bad += 1
                print(f"seed {seed}, {name}: {outcome}", flush=True)
            seed += 1
    print(f"{sum(found.values())} damaged files: {dict(found)}; the slowest took {slowest:.1f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
