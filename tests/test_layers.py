"""The directions of imports."""

import ast
from pathlib import Path

import pytest

from tests import paths

ROOT = paths.ROOT
PACKAGES = ("storage", "schema", "server")


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def files(folder: str) -> list[Path]:
    """The product's files below a folder."""
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def names(path: Path, *packages: str) -> set[str]:
    """What a file imports of these packages."""
    return {name for name in imported(path) if name.split(".")[0] in packages}


def test_storage_knows_neither_graphql_nor_the_web() -> None:
    for path in files("storage"):
        outer = ("schema", "server", "strawberry", "graphql", "starlette", "uvicorn", "typer")
        assert not names(path, *outer), path


def test_the_schema_knows_neither_the_server_nor_a_driver() -> None:
    for path in files("schema"):
        assert not names(path, "server", "starlette", "uvicorn", "motor", "pymongo", "bson", "sqlite3"), path
        assert not {name for name in imported(path) if name.startswith(("storage.sqlite", "storage.mongo"))}, path


@pytest.mark.parametrize(
    ("drivers", "home"), [(("motor", "pymongo", "bson"), "storage/mongo"), (("sqlite3",), "storage/sqlite")]
)
def test_a_driver_is_imported_by_its_own_package_alone(drivers: tuple[str, ...], home: str) -> None:
    users = {path for package in PACKAGES for path in files(package) if names(path, *drivers)}
    assert users
    assert {path for path in users if not path.is_relative_to(ROOT / home)} == set()


def test_only_the_composition_root_names_a_store() -> None:
    for package in PACKAGES:
        for path in files(package):
            stores = {name for name in imported(path) if name.startswith(("storage.sqlite", "storage.mongo"))}
            inside = path.is_relative_to(ROOT / "storage/sqlite") or path.is_relative_to(ROOT / "storage/mongo")
            assert not stores or inside or path == ROOT / "server/stores.py", path
