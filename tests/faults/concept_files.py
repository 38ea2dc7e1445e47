"""A file of concepts beside its embedding; what comes of reading a damaged one."""

import functools
import json
import tempfile
from pathlib import Path

import numpy as np

import mercer
from mercer.exceptions import ModelFileError
from mercer.explain import concept_scores, find_concept, read_concepts, write_concepts
from tests.faults.models import X
from tests.faults.mutations import JUNK, mutate_bytes
from tests.faults.outcomes import MIB, Hang, described, within_memory, within_seconds


@functools.cache
def embedding():
    """Return the embedding whose directions the concepts are."""
    return mercer.Nystrom(n_landmarks=8, random_state=0).fit(X)


@functools.cache
def saved_concepts():
    """Return the bytes of a file of two concepts."""
    high = X[:, 0] > 0
    found = [find_concept(embedding(), X[high], X[~high], name, random_state=0) for name in ("high", "higher <b>")]
    with tempfile.TemporaryDirectory() as folder:
        write_concepts(found, embedding(), Path(folder) / "concepts.json")
        return (Path(folder) / "concepts.json").read_bytes()


def mutate_concepts(data, dice):
    """Return the file with bytes changed, or with a value in it exchanged for another."""
    if dice.random() < 0.5:
        return mutate_bytes(data, dice)
    document = json.loads(data)
    place = dice.choice([document, *document["concepts"], document["concepts"][0]["vector"]])
    keys = range(len(place)) if isinstance(place, list) else list(place)
    place[dice.choice(keys)] = dice.choice([*JUNK, float("nan"), float("inf"), 1e308, "nan"])
    return json.dumps(document).encode()


def judged_concepts(name, data, path):
    """Return the outcome of a file with this content: "refused", "works", or "bad: ..." and why."""
    path.write_bytes(data)
    try:
        with within_seconds(), within_memory(64 * MIB + 64 * len(data)):
            for concept in read_concepts(path, embedding()):
                if not np.isfinite(concept_scores(embedding(), X[:2], concept)).all():
                    return "bad: scores are not finite"
                if not (0.0 <= concept.accuracy <= 1.0 and concept.n_examples > 0 and isinstance(concept.name, str)):
                    return f"bad: {concept}"
    except ModelFileError as error:
        return "refused" if len(str(error)) < 5000 and str(error).isprintable() else "bad: message"
    except (Exception, Hang) as error:
        return f"bad: {described(error)}"
    return "works"
