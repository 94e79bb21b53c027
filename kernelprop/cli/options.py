"""Options that several commands share: declared once, as the fields of a dataclass, and spread over a signature."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, get_type_hints

import typer


def option(panel: str, text: str, metavar: str, *names: str) -> Any:
    """An option with a value."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


def switch(panel: str, text: str, *names: str) -> Any:
    """An option without one."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False)


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every field of each parameter that is a dataclass of options.

    A field ``gamma: Annotated[float | None, option(…)] = None`` of a parameter's class becomes the option ``--gamma``,
    in the parameter's place; the command gets the dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    groups = {name: hints[name] for name in parameters if dataclasses.is_dataclass(hints[name])}

    @wraps(command)
    def spread(**given: Any) -> None:
        made = {
            name: kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)}) for name, kind in groups.items()
        }
        command(**made, **given)

    taken = [one for parameter in parameters.values() for one in _taken(parameter, hints, groups)]
    signature: Any = spread
    signature.__signature__ = inspect.Signature(taken)
    signature.__annotations__ = {one.name: one.annotation for one in taken} | {"return": None}
    return spread


def _taken(parameter: inspect.Parameter, hints: dict[str, Any], groups: dict[str, Any]) -> Iterator[inspect.Parameter]:
    if parameter.name not in groups:
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
        return
    kind = groups[parameter.name]
    of_fields = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        yield inspect.Parameter(
            field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=of_fields[field.name]
        )
