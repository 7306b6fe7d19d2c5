"""A server for a browser, and the browser.

Where Node or Chromium is missing these tests are left out and that is said, but never in CI.
"""

import os
import shutil
from pathlib import Path

import pytest

NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FOLDER = Path(__file__).parent
missing = [name for name, found in (("Node", NODE), ("Chromium", CHROMIUM)) if found is None]
left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not missing or os.environ.get("CI"):
        return
    needing = [item for item in items if FOLDER in item.path.parents]
    items[:] = [item for item in items if item not in needing]
    config.hook.pytest_deselected(items=needing)
    config.stash[left_out] = len(needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (count := config.stash.get(left_out, 0)) > 0:
        terminalreporter.write_line(f"{' and '.join(missing)} missing: {count} tests with a browser were left out.")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser. Node is there too, with the packages that drive it."""
    assert not missing, f"{' and '.join(missing)} missing"
    assert (FOLDER / "node_modules").exists(), f"run npm ci in {FOLDER}, as make test does"
    assert CHROMIUM is not None
    return CHROMIUM
