"""Settings: their flags, their variables, and the page that lists them."""

import importlib.metadata
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from server.cli import build
from server.commands.options import takes_settings
from server.settings import Settings, flags, table, variable
from tests import paths
from tests.server.commands.runner import run

PAGE = paths.ROOT / "docs" / "configuration.md"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)


def received(*arguments: str) -> Settings:
    """The settings that a command with an option for each of them gets."""
    found: list[Settings] = []

    @takes_settings(*Settings.model_fields)
    def command(settings: Settings) -> None:
        found.append(settings)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return found[0]


def test_the_page_of_settings_is_the_table_that_they_make() -> None:
    assert f"\n\n{table()}" in PAGE.read_text(), f"put this into {PAGE}:\n{table()}"


def test_without_flags_and_variables_each_setting_has_its_default() -> None:
    assert received() == Settings.model_construct()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_is_set_by_its_flag_and_by_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    field = Settings.model_fields[name]
    if field.annotation is bool:
        flag = flags(name)[1 if field.default else 0]
        assert getattr(received(flag), name) is not field.default
        monkeypatch.setenv(variable(name), str(not field.default).lower())
        assert getattr(received(), name) is not field.default
        return
    value = {"log_level": "error", "log_format": "json", "metrics": "open"}.get(name, "7")
    expected = getattr(Settings.model_validate({name: value}), name)
    assert expected != field.default
    assert getattr(received(flags(name)[0], value), name) == expected
    monkeypatch.setenv(variable(name), value)
    assert getattr(received(), name) == expected


def test_a_command_has_its_own_options_before_those_of_settings() -> None:
    found: list[tuple[int, Path, int]] = []

    @takes_settings("data_dir", workers=1)
    def command(settings: Settings, number: Annotated[int, typer.Option(help="A number.")] = 0) -> None:
        found.append((number, settings.data_dir, settings.workers))

    app = typer.Typer()
    app.command()(command)
    runner = CliRunner(env={variable("workers"): "9"})
    assert runner.invoke(app, ["--number", "3", "--data-dir", "there"]).exit_code == 0
    assert found == [(3, Path("there"), 1)]
    text = runner.invoke(app, ["--help"]).output
    assert text.index("--number") < text.index("--data-dir")
    assert "--workers" not in text


def test_a_value_out_of_bounds_is_a_usage_error() -> None:
    done = run("serve", "--port", "65536")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--port" in done.stderr and "65535" in done.stderr


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(build(), ["--version"])
    assert (result.exit_code, result.output) == (0, f"sapwood {importlib.metadata.version('sapwood')}\n")
