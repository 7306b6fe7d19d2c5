"""GraphiQL in a real browser, without the network and under its policy."""

import json
import subprocess
from pathlib import Path

from tests.browser.conftest import FOLDER
from tests.server.process import Server


def test_graphiql_runs_queries_and_shows_events(chromium: str, tmp_path: Path) -> None:
    """Nothing comes from elsewhere, the policy forbids nothing that is needed, and live events appear."""
    server = Server(tmp_path / "data", tmp_path / "log")
    server.start()
    try:
        script = ["node", FOLDER / "graphiql.mjs", server.url, chromium, tmp_path / "profile", "watched"]
        seen = json.loads(subprocess.run(script, check=True, capture_output=True, timeout=120).stdout)
    finally:
        server.end()
    assert seen == {
        "problems": [],
        "foreign": [],
        "done": True,
        "tabs": ["Viewer", "FirstSession", "Fork", "Forest", "Follow"],
    }
