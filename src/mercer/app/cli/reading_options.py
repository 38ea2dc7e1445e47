"""The options of all commands that read tables. A decorator adds them to the signature of a command."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mercer.app.cli.options import TableOptions
from mercer.app.cli.parameters import Decimal, Encoding, HasHeader, Kinds, MaxMb, SafeCsv, Sheet

# Keys are fields of TableOptions, in the order in which the help shows them.
OF_READING = {"kinds": Kinds, "header": HasHeader, "sheet": Sheet, "encoding": Encoding, "decimal": Decimal}
OF_SIZES = {"max_mb": MaxMb}
OF_WRITING = {"safe_csv": SafeCsv}


def reads_tables(*, writes_csv: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces a command's argument `tables` by one option for each field of TableOptions.

    Typer builds the options from the signature of the function. The new ones take the place of `tables` in it.

    Parameters
    ----------
    writes_csv : bool, default=False
        Whether the command has the option --safe-csv.
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
