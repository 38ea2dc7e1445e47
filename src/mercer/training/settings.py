"""Settings of a fit as texts, by which a checkpoint is known again in this process or another."""

import hashlib
from collections.abc import Iterable
from functools import partial
from types import CodeType
from typing import Any


def settings_of(model: Any, names: Iterable[str]) -> dict[str, str]:
    """Return parameters of an estimator by which a checkpoint of its fit is known again, in this process or another."""
    return {name: text_in_any_process(getattr(model, name)) for name in names}


def text_in_any_process(value: Any) -> str:
    """Return a text of a value that is the same in another process, and another for another value.

    The text of a function has its address, so its name stands for it; of a lambda, whose name says nothing, also what
    it does.
    """
    if isinstance(value, partial):
        bound = [*map(text_in_any_process, value.args)]
        bound += [f"{name}={text_in_any_process(value.keywords[name])}" for name in sorted(value.keywords)]
        return f"{text_in_any_process(value.func)}({', '.join(bound)})"
    name = getattr(value, "__qualname__", None)
    if name is not None:
        return f"{name} {digest_of_code(value.__code__)}" if name.endswith("<lambda>") else name
    kind: Any = type(value)
    return str(kind.__qualname__) if kind.__repr__ is object.__repr__ else str(value)


def digest_of_code(code: CodeType) -> str:
    """Return a digest of what code does, wherever it is written."""
    constants = [digest_of_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()[:16]
