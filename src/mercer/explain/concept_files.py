"""Files of concepts: their names and vectors, and a fingerprint of the embedding that each vector belongs to."""

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.exceptions import ModelFileError, invalid_parameter, shown
from mercer.explain.concepts import Concept, check_embedding
from mercer.storage.atomic import check_path, check_target, write_atomically
from mercer.storage.reading import naming, read_checked
from mercer.storage.tensors import no_constant

FORMAT = "mercer concepts 1"
MOST_BYTES = 64 * 2**20


def write_concepts(concepts: Sequence[Concept], embedding: Any, path: str | os.PathLike[str]) -> None:
    """Write concepts of an embedding to a file; the file is written completely or not at all.

    Parameters
    ----------
    concepts : sequence of Concept
    embedding : fitted KernelEmbedding or Nystrom
        The embedding in which the concepts were found.
    path : str or path
        Such as "photos.concepts.json".
    """
    document = concepts_document([(concept, embedding) for concept in concepts])
    write_document(document, path)


def read_concepts(path: str | os.PathLike[str], embedding: Any) -> list[Concept]:
    """Return the concepts in a file that were found in this embedding; concepts of other embeddings are skipped.

    Parameters
    ----------
    path : str or path
    embedding : fitted KernelEmbedding or Nystrom

    Raises
    ------
    ModelFileError
        If the file is not a file of concepts, is damaged, or holds only concepts of other embeddings.
    """
    check_embedding(embedding)
    own, wrong = fingerprint(embedding), naming(check_path(path), ModelFileError)
    entries = read_document(path)["concepts"]
    found = [_concept(entry, embedding, wrong) for entry in entries if entry.get("embedding") == own]
    if entries and not found:
        raise wrong("holds concepts of another embedding: directions of one mean nothing in another")
    return found


def concepts_document(named: Sequence[tuple[Concept, Any]]) -> dict[str, Any]:
    """Return pairs of a concept and its embedding as a document of plain values."""
    entries = []
    for concept, embedding in named:
        if not isinstance(concept, Concept):
            raise invalid_parameter("concepts", concept, "what mercer.explain.find_concept returns")
        entries.append({**concept._asdict(), "vector": concept.vector.tolist(), "embedding": fingerprint(embedding)})
    return {"format": FORMAT, "concepts": entries}


def write_document(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document of concepts to a file, completely or not at all."""
    write_atomically(check_target(path), [json.dumps(document, allow_nan=False, indent=1).encode()])


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a document of concepts from a file, whichever embeddings these belong to."""
    wrong = naming(check_path(path), ModelFileError)

    def begins_well(first: bytes, size: int) -> str | None:
        if size > MOST_BYTES:
            return f"has {size} bytes, more than concepts can have ({MOST_BYTES})"
        return None if first.lstrip()[:1] == b"{" else "holds no concepts of Mercer"

    content = bytes(read_checked(check_path(path), begins_well, 64, wrong))
    try:
        document = json.loads(content, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:  # integers of too many digits are a ValueError
        raise wrong("is damaged or incomplete: it is no JSON") from error
    if document.get("format") != FORMAT or not isinstance(document.get("concepts"), list):
        raise wrong("holds no concepts of Mercer")
    if not all(isinstance(entry, dict) for entry in document["concepts"]):
        raise wrong("is damaged: a concept in it is no object")
    return document


def fingerprint(embedding: Any) -> str:
    """Return a short text that identifies an embedding by its coefficients, whichever file it was saved in."""
    A = np.ascontiguousarray(embedding.coefficients_, dtype="<f8")
    return hashlib.sha256(repr(A.shape).encode() + A.tobytes()).hexdigest()[:32]


def _concept(entry: dict[str, Any], embedding: Any, wrong: Any) -> Concept:
    h = embedding.coefficients_.shape[1]
    try:
        vector = np.array(entry["vector"], dtype=np.float64)
        name, shares = entry["name"], [float(entry[key]) for key in ("accuracy", "stability")]
        counts = [entry[key] for key in ("n_examples", "n_others")]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise wrong("is damaged: a concept in it lacks something") from error
    accuracy, stability = shares
    are_shares = 0.0 <= accuracy <= 1.0 and -1.0 <= stability <= 1.0
    are_counts = all(type(each) is int and 1 <= each < MOST_BYTES for each in counts)
    if not (isinstance(name, str) and are_shares and are_counts):
        raise wrong("is damaged: of a concept in it a name is no text, or a number is out of bounds")
    with np.errstate(over="ignore"):
        length = np.linalg.norm(vector)
    if vector.shape != (h,) or not np.isclose(length, 1.0):
        raise wrong(f"is damaged: the vector of {shown(name)} is not of {h} numbers and of length 1")
    return Concept(name, vector, accuracy, stability, *counts)
