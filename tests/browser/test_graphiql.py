"""GraphiQL in a real browser, offline and under its content security policy."""

import json
import subprocess
from pathlib import Path

from tests.browser.conftest import FOLDER
from tests.server.process import Server


def test_graphiql_runs_queries_and_shows_events(chromium: str, tmp_path: Path) -> None:
    """It loads nothing from other hosts, its policy blocks nothing that it needs, and live events appear."""
    server = Server(tmp_path / "data", tmp_path / "log")
    server.start()
    try:
        script = ["node", str(FOLDER / "graphiql.mjs"), server.url, chromium, str(tmp_path / "profile"), "watched"]
        seen = json.loads(subprocess.run(script, check=True, capture_output=True).stdout)
    finally:
        server.end()
    assert seen == {
        "problems": [],
        "foreign": [],
        "done": True,
        "tabs": ["Viewer", "FirstSession", "Fork", "Forest", "Follow"],
    }
