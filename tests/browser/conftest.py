"""The browser that tests drive through Node."""

from pathlib import Path

import pytest

from tests.programs import npm_packages, required

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium; Node and the packages that drive it are installed too."""
    required("Node 20 or later", "node")
    npm_packages(FOLDER)
    return required("Chromium", "chromium", "chromium-browser", "google-chrome")
