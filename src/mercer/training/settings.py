"""The parameters of a fit as texts, by which a checkpoint is matched to its fit, also in another process."""

import hashlib
from collections.abc import Iterable
from functools import partial
from types import CodeType
from typing import Any


def settings_of(model: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the named parameters of an estimator as texts, which a checkpoint of its fit stores and compares."""
    return {name: text_in_any_process(getattr(model, name)) for name in names}


def text_in_any_process(value: Any) -> str:
    """Return a text that is the same for equal values in every process, and different for different values.

    A function is described by its name, since its `str` has its memory address. All lambdas have the same name, so a
    digest of the code is added for them.
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
    """Return a digest of compiled code that does not depend on the file and the line where the code is written."""
    constants = [digest_of_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()[:16]
