"""Links, paths, commands and codes in the documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schema.engine import policy
from server.cli import build
from storage import errors
from tests.paths import DOCS, README, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), ROOT / "frontend-example" / "README.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


def named_files(page: Path) -> Iterator[str]:
    """The files and folders of the packages that a page names, in prose or in the first column of a map."""
    folder = ""
    for piece in CODE.findall(prose(page)):
        if re.fullmatch(r"(storage|schema|server|tests|docs|frontend-example)(/[\w.-]+)*/?", piece) and "/" in piece:
            folder = piece.rpartition("/")[0]
            yield piece
        elif folder and re.fullmatch(r"\w+\.py", piece):
            yield f"{folder}/{piece}"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions.md", "docs/protocol.md"])
def test_named_files_exist(name: str) -> None:
    named = list(named_files(ROOT / name))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_map_names_existing_files() -> None:
    [layout] = re.findall(r"^```\n(server/.*?)^```$", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL | re.MULTILINE)
    package = ""
    for line in layout.splitlines():
        names = re.match(r"( *)((?:[\w.-]+(?:/|\.py) ?)+)", line)
        assert names is not None, line
        if not names[1]:
            package = names[2].strip()
            assert (ROOT / package).is_dir(), line
        else:
            assert [name for name in names[2].split() if not (ROOT / package / name).exists()] == []


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150


def test_readme_names_every_command() -> None:
    readme = README.read_text()
    commands = [
        command.name or command.callback.__name__ for command in build().registered_commands if command.callback
    ]
    for group in build().registered_groups:
        assert group.typer_instance is not None
        commands.append(f"{group.name} {group.typer_instance.registered_commands[0].name}")
    assert commands
    for command in commands:
        assert f"`sapwood {command}" in readme


def test_protocol_explains_every_error_code() -> None:
    page = (DOCS / "protocol.md").read_text()
    codes = {error.code for error in vars(errors).values() if isinstance(error, type) and hasattr(error, "code")}
    assert len(codes) > 10
    for code in codes:
        assert f"`{code}`" in page


def test_security_lists_each_mutation_with_its_role() -> None:
    lines = [line for line in (DOCS / "security.md").read_text().splitlines() if line.startswith("| `")]
    listed = {line.split("|")[1].strip(" `"): set(re.findall(r"`(\w+)`", line.split("|")[2])) for line in lines}
    for role, fields in policy.ALLOWED["mutation"].items():
        assert listed[role.lower()] == set(fields) - {"__typename"}
