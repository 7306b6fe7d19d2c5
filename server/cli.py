"""The command `sapwood`."""

import sys

import typer

from server.commands import keys
from server.commands.check import check
from server.commands.demo import demo
from server.commands.export import export
from server.commands.imports.command import import_files
from server.commands.options import Version
from server.commands.serve import serve
from server.commands.terminal import fail
from storage import errors


def build() -> typer.Typer:
    """All commands. Exit codes: 0 success, 1 failure, also a partial one, 2 wrong usage."""
    app = typer.Typer(
        help="Keeps the sessions of AI agents: append-only logs, a forest with forks, live events.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    app.command("serve")(serve)
    app.command("import")(import_files)
    app.command("export")(export)
    app.command("check")(check)
    app.command("demo")(demo)
    app.add_typer(keys.app, name="keys")
    return app


def _options(version: Version = False) -> None:
    """Options before any command."""


def main() -> None:
    """Runs the command line. A failure is one line on stderr and exit code 1."""
    try:
        build()(prog_name="sapwood")
    except errors.StartupError as error:
        fail(str(error))
        sys.exit(1)
    except errors.SapwoodError as error:
        fail(error.message)
        sys.exit(1)
