"""A small file of concepts, damaged; what comes of reading it."""

import functools
import json
import tempfile
from pathlib import Path

import numpy as np

import mercer
from mercer.explain import find_concept, read_concepts, write_concepts
from tests.faults.models import X
from tests.faults.mutations import mutate_bytes, mutate_tree
from tests.faults.outcomes import MIB, NAMED, Hang, described, within_memory, within_seconds

NUMBERS = [float("nan"), float("inf"), -float("inf"), 10**400, 1e308, -1, True, None, "", "x", [], {}]


@functools.cache
def embedding():
    """Return the embedding that the concepts are directions of."""
    return mercer.KernelEmbedding(n_components=3, random_state=0).fit(X)


@functools.cache
def saved_concepts():
    """Return the bytes of a file of two concepts."""
    high, low = np.argsort(X[:, 0])[-12:], np.argsort(X[:, 0])[:12]
    found = [find_concept(embedding(), X[high], X[low], name, random_state=0) for name in ("high", "high again")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.concepts.json"
        write_concepts(found, embedding(), path)
        return path.read_bytes()


def mutate_concepts(data, dice):
    """Return a file of concepts with some damage; there is no digest that it would have to pass."""
    if dice.random() < 0.3:
        return mutate_bytes(data, dice)
    document = json.loads(data)
    for _ in range(dice.choice([1, 1, 2, 3])):
        if dice.random() < 0.5 and document.get("concepts") and isinstance(document["concepts"], list):
            entry = dice.choice(document["concepts"])
            if isinstance(entry, dict) and entry:
                entry[dice.choice(list(entry))] = dice.choice(NUMBERS)
        elif isinstance(document, dict) and document:
            mutate_tree(document, dice)
    text = json.dumps(document)
    return (text.replace("NaN", "9" * 5000, 1) if dice.random() < 0.1 else text).encode()


def judged_concepts(name, data, path):
    """Return what comes of reading concepts with this content."""
    path.write_bytes(data)
    try:
        with within_seconds(), within_memory(64 * MIB + 4 * len(data)):
            found = read_concepts(path, embedding())
            numbers = [value for each in found for value in (*each.vector, *each[2:])]
    except NAMED as error:
        too_long = len(str(error)) > 5000 or not str(error).isprintable()
        return "bad: message too long or not printable" if too_long else "refused"
    except (Exception, Hang) as error:
        return f"bad: {described(error)}"
    return "works" if np.isfinite(np.array(numbers, dtype=float)).all() else "bad: numbers that are not finite"
