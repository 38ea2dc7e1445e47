"""The file: a safetensors header with a SHA-256 of the whole and a JSON document, then the tensors."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from mercer.exceptions import ModelFileError
from mercer.io.vocabulary import COST_OF_OBJECT, COST_OF_VALUE
from mercer.storage.atomic import check_path
from mercer.storage.reading import naming, read_checked
from mercer.storage.tensors import MAX_HEADER, TIMES, allowance, json_cost, unpacked

# The digest has a fixed place, so that it can be checked before anything in the file is parsed.
BEFORE_DIGEST = b'{"__metadata__":{"sha256":"'
DIGEST_START = 8 + len(BEFORE_DIGEST)
DIGEST_END = DIGEST_START + 64
NO_DIGEST = b"0" * 64


class Stored(NamedTuple):
    """A tensor on its way to a file: its type in safetensors' spelling, its shape, its memory as a vector."""

    dtype: str
    shape: tuple[int, ...]
    memory: np.ndarray


def pack(document: str, tensors: Mapping[str, Stored]) -> list[Any]:
    """Return the content of a file in pieces: the header, then the memory of each tensor, not copied.

    Written here and not by safetensors, whose order of metadata changes from run to run and which copies all
    tensors: the same model makes the same file. Wide types come first, so that all tensors are aligned.
    """
    ordered = sorted(tensors, key=lambda name: -tensors[name].memory.itemsize)
    header: dict[str, Any] = {"__metadata__": {"sha256": NO_DIGEST.decode(), "document": document}}
    offset = 0
    for name in ordered:
        dtype, shape, memory = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + memory.nbytes]}
        offset += memory.nbytes
    text = json.dumps(header, separators=(",", ":"))
    # Loading may take memory in proportion to the file alone. One of very many small objects, such as the encoder of
    # 10 000 columns, is made as large as they are.
    beyond = loading_cost(text, document) - allowance(8 + len(text) + offset)
    text += " " * max(0, math.ceil(beyond / TIMES))
    text += " " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"model takes {len(text)} bytes of text (lists, labels, settings), more than can be loaded again (at most "
            f"{MAX_HEADER}, or some million entries of lists): keep long lists of numbers as arrays."
        )
    head = len(text).to_bytes(8, "little") + text.encode()
    pieces = [tensors[name].memory for name in ordered]
    digest = _digest([head, *pieces])
    return [head[:DIGEST_START] + digest + head[DIGEST_END:], *pieces]


def loading_cost(text: str, document: str) -> int:
    """Return how many bytes are counted as a header with a document is loaded: by the parser, or for what is made."""
    n_values = sum(document.count(beginning) for beginning in ",[{")
    return max(json_cost(text), COST_OF_VALUE * n_values + COST_OF_OBJECT * document.count('"class"'))


def read(path: str | os.PathLike[str]) -> bytearray:
    """Return the content of a file that begins as ours do; a missing one is a FileNotFoundError that says so."""
    file = check_path(path)
    try:
        return read_checked(file, wrong_beginning, DIGEST_END, naming(file, ModelFileError))
    except FileNotFoundError:
        raise FileNotFoundError(f"path={str(file)!r}: there is no such file.") from None


def wrong_beginning(first: bytes, size: int) -> str | None:
    """Return what is wrong with the first bytes of a file of that size, None if they are those of a model file."""
    if len(first) < DIGEST_END or first[8:DIGEST_START] != BEFORE_DIGEST:
        return "is not a Mercer model file, or its beginning is damaged"
    return None


def unpack(data: bytearray) -> tuple[str, dict[str, Tensor]]:
    """Return the document and the tensors of a file's content, once its digest is found to be right."""
    view = memoryview(data)
    if _digest([view[:DIGEST_START], NO_DIGEST, view[DIGEST_END:]]) != data[DIGEST_START:DIGEST_END]:
        raise ModelFileError("is damaged or incomplete: its content does not match its SHA-256")
    texts, tensors = unpacked(data)
    document = texts.get("document")
    if document is None:
        raise ModelFileError("is not a Mercer model file: it has no document")
    if not document.isascii():
        raise ModelFileError("is malformed: its document has characters that are not ASCII")
    return document, tensors


def _digest(pieces: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()
