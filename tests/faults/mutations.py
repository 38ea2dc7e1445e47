"""Damaged model files and checkpoints: at the level of bytes, of JSON fields, of tensors; with the digest made anew."""

import copy
import hashlib
import json
import random

import numpy as np

from mercer.io.classes import addresses
from tests.model_files import sealed

NAN, INFINITY = {"float": "7ff8000000000000"}, {"float": "7ff0000000000000"}
JUNK = [None, True, False, 0, -1, 1, 2, 3, 7, 10**8, 10**18, 0.5, -0.5, 1e-300, 1e308, -1e308, "", "x", "none", "auto"]
JUNK += ["a" * 5000, "\x1b[31mred\x07", "../../etc/passwd", [], [0], [[]], [None] * 3, {}, {"tuple": []}, {"dict": []}]
JUNK += [NAN, INFINITY, {"int": "f" * 40}, {"tuple": [3]}, {"text": {"shape": [1], "width": 3, "items": ["abc"]}}]
JUNK += [{"slice": [None, None, None]}, {"type": "torch.float32"}, {"scalar": ["float64", "000000000000f07f"]}]
JUNK += [{"text": {"shape": [1], "width": 2**27, "items": ["a"]}}, {"device": "cuda"}, {"given": "x"}]
JUNK += [{"object": {"class": "mercer.kernels.Linear", "params": {}, "state": {}}}]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e155, 1e39, 0.0, -1.0, 1e-320, 1.0]
WIDTHS = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "U32": 4, "BOOL": 1, "U8": 1, "I8": 1}


def parts_of(data):
    """Return the header and the body of a file."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def resealed(header, body):
    """Return a model file with a right digest."""
    header["__metadata__"]["sha256"] = "0" * 64
    return sealed(header, bytes(body))


def mutate_bytes(data, dice):
    """Return the file with bytes flipped, cut out, repeated or put in, mostly with a digest that no longer fits."""
    data = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 8])):
        place = dice.randrange(len(data))
        kind = dice.randrange(5)
        if kind == 0:
            data[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del data[place : place + dice.choice([1, 8, 1000])]
        elif kind == 2:
            data[place:place] = bytes(dice.randrange(256) for _ in range(dice.choice([1, 8, 100])))
        elif kind == 3:
            del data[place:]
        else:
            data[place:place] = data[place : place + 64]
        if len(data) < 2:
            break
    if dice.random() < 0.5 and len(data) > 99:  # sealed again, as it stands
        head = data[:35] + b"0" * 64 + data[99:]
        data[35:99] = hashlib.sha256(head).hexdigest().encode()
    return bytes(data)


def nodes(tree, path=()):
    """Yield the path of every value of a JSON tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield from nodes(item, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def changed_value(value, tree, dice):
    """Return what stands in the place of a value: junk, another part of the tree, or the value changed a little."""
    kind = dice.randrange(4)
    if kind == 0 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return dice.choice([-value, value + 1, value - 1, value * 10**6, value * 1e300, value / 2])
    if kind == 0 and isinstance(value, str):
        return dice.choice([value + "x", value[:-1], value.upper(), dice.choice(sorted(addresses()))])
    if kind == 1:
        return copy.deepcopy(at(tree, dice.choice(list(nodes(tree)))))
    return copy.deepcopy(dice.choice(JUNK))


def mutate_tree(tree, dice):
    """Change one value of a JSON tree in place: replaced, removed, repeated, renamed or moved."""
    path = dice.choice([path for path in nodes(tree) if path])
    parent, key = at(tree, path[:-1]), path[-1]
    kind = dice.randrange(8)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif kind == 1:
        parent[dice.choice([key + "x", "x_", "__class__", "fit", *parent])] = parent.pop(key)
    elif kind == 2 and isinstance(parent, list):
        dice.shuffle(parent)
    else:
        parent[key] = changed_value(parent[key], tree, dice)


def mutate_json(data, dice):
    """Return a model file with one to three values of its document changed."""
    header, body = parts_of(data)
    document = json.loads(header["__metadata__"]["document"])
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        tree = document["model"] if dice.random() < 0.95 and document.get("model") else document
        if list(nodes(tree))[1:]:
            mutate_tree(tree, dice)
    header["__metadata__"]["document"] = json.dumps(document)
    return resealed(header, body)


def mutate_tensors(data, dice, seal=resealed):
    """Return a file with a tensor changed: its numbers, its type, its shape or its length."""
    header, body = parts_of(data)
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return mutate_json(data, dice) if seal is resealed else data
    name = dice.choice(names)
    entry, body = header[name], bytearray(body)
    start, stop = entry["data_offsets"]
    width = WIDTHS.get(entry["dtype"], 1)
    n = (stop - start) // width
    kind = dice.randrange(6)
    if kind <= 1 and entry["dtype"] in ("F64", "F32") and n:
        array = np.frombuffer(body, dtype=np.float64 if width == 8 else np.float32, count=n, offset=start)
        with np.errstate(over="ignore"):
            some = slice(None) if dice.random() < 0.3 else dice.randrange(n)
            array[some] = dice.choice(NUMBERS)
    elif kind <= 1 and n and entry["dtype"] in ("I64", "I32"):
        array = np.frombuffer(body, dtype=np.int64 if width == 8 else np.int32, count=n, offset=start)
        array[dice.randrange(n)] = dice.choice([-1, -(2**31), 0, 1, n, 2**31 - 1])
    elif kind == 2:
        same = [dtype for dtype, other in WIDTHS.items() if other == width]
        entry["dtype"] = dice.choice(same)
    elif kind == 3:
        shape = entry["shape"]
        entry["shape"] = dice.choice([shape[::-1], [n], [1, n], [n, 1], [*shape, 1], shape[:1] * 2, [0, 10**9]])
    elif kind == 4 and n:  # one number fewer, the others move up
        del body[stop - width : stop]
        for other in names:
            header[other]["data_offsets"] = [o - width if o >= stop else o for o in header[other]["data_offsets"]]
        entry["shape"] = [n - 1]
    elif n:
        place = start + dice.randrange(stop - start)
        body[place] = dice.randrange(256)
    return seal(header, body)


def mutate_model(data, dice):
    """Return a model file with some damage."""
    return dice.choice([mutate_bytes, mutate_json, mutate_json, mutate_json, mutate_tensors])(data, dice)


def sealed_checkpoint(header, body):
    """Return a checkpoint with a right digest, or with the old one where the tensors cannot be told any more."""
    from mercer.storage.tensors import unpacked
    from mercer.training.checkpoint import _digest

    text = json.dumps(header).encode()
    data = bytearray(len(text).to_bytes(8, "little") + text + bytes(body))
    try:
        texts, tensors = unpacked(data)
        header["__metadata__"]["sha256"] = _digest(texts["document"], tensors)
    except Exception:
        return bytes(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(body)


def mutate_checkpoint(data, dice):
    """Return a checkpoint with some damage."""
    kind = dice.randrange(5)
    if kind == 0:
        return mutate_bytes(data, dice)
    if kind == 1:
        return mutate_tensors(data, dice, sealed_checkpoint)
    header, body = parts_of(data)
    if kind == 2:  # a tensor under another name
        names = [name for name in header if name != "__metadata__"]
        name = dice.choice(names)
        header[dice.choice([*names, "module/x", "x", "best/" + name, "optimizer/exp_avg/" + name])] = header.pop(name)
        return sealed_checkpoint(header, body)
    document = json.loads(header["__metadata__"]["document"])
    mutate_tree(document, dice)
    header["__metadata__"]["document"] = json.dumps(document)
    return sealed_checkpoint(header, body)


def dice_of(seed):
    return random.Random(seed)
