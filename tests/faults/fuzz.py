"""Damage model files, checkpoints and files of concepts: python -m tests.faults.fuzz --seconds 600 [--count N]."""

import argparse
import collections
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.faults.checkpoints import judged_checkpoint, saved_checkpoint
from tests.faults.concepts import judged_concepts, mutate_concepts, saved_concepts
from tests.faults.models import MAKERS, saved
from tests.faults.mutations import dice_of, mutate_checkpoint, mutate_model
from tests.faults.outcomes import judged

# What is damaged beside models: how it is made, damaged and judged.
OTHERS = {
    "checkpoint": (saved_checkpoint, mutate_checkpoint, judged_checkpoint),
    "concepts": (saved_concepts, mutate_concepts, judged_concepts),
}
NAMES = [*MAKERS, "checkpoint", "checkpoint", "concepts"]


def damaged(seed):
    """Return the name of a model, and its file with the damage of that seed."""
    dice, name = dice_of(seed), NAMES[seed % len(NAMES)]
    if name in OTHERS:
        make, damage, _ = OTHERS[name]
        return name, damage(make(), dice)
    return name, mutate_model(saved(name), dice)


def outcome_of(seed, folder):
    """Return the name of a model, and what came of its file with the damage of that seed."""
    name, data = damaged(seed)
    judge = OTHERS[name][2] if name in OTHERS else judged
    return name, judge(name, data, Path(folder) / "damaged")


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
        for name in MAKERS:
            whole = judged(name, saved(name), Path(folder) / "whole")
            assert whole == "works", (name, whole)
        end, seed = time.monotonic() + options.seconds, options.seed
        while time.monotonic() < end and (options.count is None or seed < options.seed + options.count):
            if not NAMES[seed % len(NAMES)].startswith(options.only):
                seed += 1
                continue
            start = time.process_time()
            try:
                name, outcome = outcome_of(seed, folder)
            except Exception:
                name, outcome = "?", "bad: " + traceback.format_exc()
            slowest = max(slowest, time.process_time() - start)
            found[outcome.split(":")[0]] += 1
            if outcome.startswith("bad"):
                bad += 1
                print(f"seed {seed}, {name}: {outcome}", flush=True)
            seed += 1
    print(f"{sum(found.values())} damaged files: {dict(found)}; the slowest took {slowest:.1f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
