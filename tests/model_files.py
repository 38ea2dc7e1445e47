"""What the tests of saving and loading share."""

import hashlib
import json
import struct

import numpy as np
import torch
from scipy import sparse

import mercer
import mercer.io
from mercer import Mahalanobis


def same(a, b):
    """Whether two values are of one type and equal bit by bit, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, torch.Tensor):
        bits = [t.resolve_conj().resolve_neg().reshape(-1).view(torch.uint8).tolist() for t in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and bits[0] == bits[1]
    if sparse.issparse(a):
        return a.shape == b.shape and all(same(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr"))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return bool(a == b)


def there_and_back(model, folder, **objects):
    path = folder / "model.mercer"
    mercer.save(model, path)
    return mercer.load(path, objects or None)


def value_there_and_back(value, folder):
    """Send a value along as a parameter and as a fitted attribute; return the latter."""
    model = Mahalanobis(value)
    model.extra_ = value
    loaded = there_and_back(model, folder)
    assert same(loaded.factor, loaded.extra_)
    return loaded.extra_


def sealed(header, body=b"", length=None):
    """Return a file with that header and a right digest, written without Mercer."""
    text = json.dumps(header, separators=(",", ":")).encode()
    data = (len(text) if length is None else length).to_bytes(8, "little") + text + body
    return data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1)


def with_document(document, tensors=None, body=b"", length=None):
    text = document if isinstance(document, str) else json.dumps(document)
    return sealed({"__metadata__": {"sha256": "0" * 64, "document": text}, **(tensors or {})}, body, length)


def with_model(model, **changes):
    document = {"format": "mercer-model", "version": mercer.io.FORMAT_VERSION, "mercer": "0.1.0", "objects": {}}
    return {**document, "model": model, **changes}


def metric(factor=None, name="mercer.Mahalanobis", state=None):
    return {"object": {"class": name, "params": {"factor": factor}, "state": state or {}}}


def load_bytes(data, folder):
    path = folder / "crafted"
    path.write_bytes(data)
    return mercer.load(path)


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value
