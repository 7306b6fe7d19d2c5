"""Options that commands share. Those of settings are made from `Settings`."""

import importlib.metadata
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from server.settings import Settings, flags, variable
from storage import errors, text


def takes_settings(*names: str, **fixed: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command, whose first parameter is `settings`, an option for each of these settings in its place.

    The command gets the settings whole: those named from its options or their variables, `fixed` ones as they are, and
    the others from their variables. A value out of bounds is a usage error.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            options = {name: given.pop(name) for name in names}
            command(_settings(**options, **fixed), **given)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        signature = inspect.Signature([*own, *map(_parameter, names)], return_annotation=None)
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        run.__signature__ = signature  # type: ignore[attr-defined]  # what inspect, and so Typer, goes by
        return run

    return decorate


def _parameter(name: str) -> inspect.Parameter:
    """The parameter that Typer makes a setting's option of."""
    field = Settings.model_fields[name]
    option = typer.Option("/".join(flags(name)), envvar=variable(name), help=field.description)
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=field.default,
        annotation=Annotated[field.annotation, option],
    )


def _settings(**given: Any) -> Settings:
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "-".join(str(part) for part in first["loc"]).replace("_", "-")
        raise typer.BadParameter(f"{first['msg']}, not {first['input']!r}", param_hint=f"--{name}") from error


def check_space(value: str | None) -> str | None:
    """Passes on the name of a space, or None. Raises BadParameter for one that is not a name."""
    try:
        return value if value is None else text.space_name(value)
    except errors.BadInput as error:
        raise typer.BadParameter(error.message.removeprefix("space: ")) from error


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sapwood {importlib.metadata.version('sapwood')}")
        raise typer.Exit


Space = Annotated[str, typer.Option(callback=check_space, help="The space to work in.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]
Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
