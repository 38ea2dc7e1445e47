"""The file format: a safetensors header with a SHA-256 of the file and a JSON document, followed by the tensors."""

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

# The digest is at a fixed position, so that it can be checked before anything in the file is parsed.
BEFORE_DIGEST = b'{"__metadata__":{"sha256":"'
DIGEST_START = 8 + len(BEFORE_DIGEST)
DIGEST_END = DIGEST_START + 64
NO_DIGEST = b"0" * 64


class Stored(NamedTuple):
    """A tensor to be written: its dtype as safetensors spells it, its shape, and its memory as a vector."""

    dtype: str
    shape: tuple[int, ...]
    memory: np.ndarray


def pack(document: str, tensors: Mapping[str, Stored]) -> list[Any]:
    """Return the content of a file in pieces: the header, and the memory of each tensor, which is not copied.

    safetensors itself is not used, because its order of metadata changes from run to run and it copies all tensors.
    Here, the same model gives the same file. Wide dtypes come first, so that all tensors are aligned.
    """
    ordered = sorted(tensors, key=lambda name: -tensors[name].memory.itemsize)
    header: dict[str, Any] = {"__metadata__": {"sha256": NO_DIGEST.decode(), "document": document}}
    offset = 0
    for name in ordered:
        dtype, shape, memory = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + memory.nbytes]}
        offset += memory.nbytes
    text = json.dumps(header, separators=(",", ":"))
    # Loading may only take memory in proportion to the size of the file. A file with very many small objects, such as
    # the encoder of 10 000 columns, is padded until it is large enough.
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
    """Return the bytes that loading counts for a header: by the parser, or for the values made if these are more."""
    n_values = sum(document.count(beginning) for beginning in ",[{")
    return max(json_cost(text), COST_OF_VALUE * n_values + COST_OF_OBJECT * document.count('"class"'))


def read(path: str | os.PathLike[str]) -> bytearray:
    """Return the content of a file that begins like a model file; raise FileNotFoundError if there is no file."""
    file = check_path(path)
    try:
        return read_checked(file, wrong_beginning, DIGEST_END, naming(file, ModelFileError))
    except FileNotFoundError:
        raise FileNotFoundError(f"path={str(file)!r}: there is no such file.") from None


def wrong_beginning(first: bytes, size: int) -> str | None:
    """Return what is wrong with the first bytes of a file, or None if it begins like a model file."""
    if len(first) < DIGEST_END or first[8:DIGEST_START] != BEFORE_DIGEST:
        return "is not a Mercer model file, or its beginning is damaged"
    return None


def unpack(data: bytearray) -> tuple[str, dict[str, Tensor]]:
    """Return the document and the tensors in the content of a file, after checking its digest."""
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
