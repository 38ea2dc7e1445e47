"""The options of all commands that read tables, written once: a decorator adds them to a command's signature."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mercer.app.cli.options import TableOptions
from mercer.app.cli.parameters import Decimal, Encoding, HasHeader, Kinds, MaxMb, SafeCsv, Sheet

# By the names of TableOptions, in the order of the help.
OF_READING = {"kinds": Kinds, "header": HasHeader, "sheet": Sheet, "encoding": Encoding, "decimal": Decimal}
OF_SIZES = {"max_mb": MaxMb}
OF_WRITING = {"safe_csv": SafeCsv}


def reads_tables(*, writes_csv: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of a command: in place of its argument `tables` the command line has an option for each field.

    Typer reads the signature that a function says it has. The options stand where `tables` stood.

    Parameters
    ----------
    writes_csv : bool, default=False
        Whether texts that spreadsheets take for formulas may be made harmless.
    """
    added = OF_READING | OF_SIZES | (OF_WRITING if writes_csv else {})
    defaults = dict.fromkeys(added) | {name: False for name in OF_WRITING if name in added}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            of_tables = {name: given.pop(name) for name in added}
            of_tables["kinds"] = tuple(of_tables["kinds"] or ())
            command(**given, tables=TableOptions(**of_tables))

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name != "tables":
                parameters.append(parameter)
                continue
            parameters += [
                inspect.Parameter(name, parameter.kind, default=defaults[name], annotation=kind)
                for name, kind in added.items()
            ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return decorate
