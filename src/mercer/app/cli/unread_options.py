"""Errors for options that the user gave, and that the command does not read for a certain kind of fit or model."""

from collections.abc import Collection
from enum import Enum

import typer

from mercer.exceptions import invalid_parameter


def refuse_unread(context: typer.Context, read: Collection[str], where: str) -> None:
    """Raise an error if the user gave an option that is not read, even if its value is the default.

    Parameters
    ----------
    context : typer.Context
        The context of the command that was called.
    read : collection of str
        The names of the parameters that are read. All others must have been left out.
    where : str
        In which case the others must be left out, for the message; such as "where --landmarks is given".
    """
    options = [each for each in context.command.params if each.param_type_name == "option"]
    allowed = ", ".join(each.opts[0] for each in options if each.name in read)
    for option in options:
        source = context.get_parameter_source(option.name or "")
        if option.name in read or source is None or source.name.startswith("DEFAULT"):
            continue
        value = context.params.get(option.name or "")
        value = value.value if isinstance(value, Enum) else value
        hint = f"These options may be given: {allowed}."
        raise invalid_parameter(str(option.name), value, f"left out {where}", hint)
