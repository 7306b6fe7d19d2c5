"""Writes the locks: what pyproject.toml asks for, pinned to today's versions.

requirements.lock is what a server needs; tests/requirements.lock is what tests and linters need beside it.
"""

import subprocess
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent


def pins(wanted: str) -> list[str]:
    """The versions that a fresh environment gets."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "setuptools>=77", wanted], check=True)
        frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True).stdout
    return [line for line in frozen.splitlines() if not line.startswith(("pip==", "sapwood"))]


product = pins(str(ROOT))
(ROOT / "requirements.lock").write_text("\n".join(product) + "\n")
beside = [line for line in pins(f"{ROOT}[test,lint]") if line not in product]
(ROOT / "tests" / "requirements.lock").write_text("\n".join(beside) + "\n")
