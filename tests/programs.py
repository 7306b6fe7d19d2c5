"""Programs and npm packages that some tests need."""

import os
import shutil
from pathlib import Path

import pytest


def required(purpose: str, *names: str) -> str:
    """The path of the first of these programs that is installed. If none is, the test is skipped; in CI it fails."""
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    reason = f"{purpose} is not installed"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def npm_packages(folder: Path) -> Path:
    """The folder, once its npm packages are known to be installed."""
    assert (folder / "node_modules").exists(), f"run `npm ci` in {folder}, as `make test` does"
    return folder
