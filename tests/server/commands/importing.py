"""Running `sapwood import` and reading what it did."""

import json
from pathlib import Path
from typing import Any

from tests.server.commands.runner import run

COUNTS = ("sessions", "forks", "otherNodes", "known", "events")


def session(id: str, *contents: str, **header: Any) -> str:
    """A log in our own format with a message for each content."""
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    messages = [{"seq": seq, "type": "user/message", "content": content} for seq, content in enumerate(contents)]
    return "".join(json.dumps(line) + "\n" for line in (first, *messages))


def imported(*arguments: str | Path, code: int = 0, **given: Any) -> dict[str, Any]:
    """The JSON report of an import."""
    done = run("import", "--json", *arguments, **given)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counts(document: dict[str, Any]) -> list[int]:
    """The sums over all files: sessions, forks, other nodes, known sessions and events."""
    return [sum(each[name] for each in document["imported"]) for name in COUNTS]


def contents(id: str, folder: Path) -> list[str]:
    """The texts of a session."""
    lines = run("export", id, cwd=folder).stdout.splitlines()
    return [json.loads(line)["content"] for line in lines[1:]]
