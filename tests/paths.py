"""Paths of files that tests read."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""
DATA = ROOT / "tests" / "data"
"""Real logs of real agents."""
FAULTS = ROOT / "tests" / "storage" / "transfer" / "faults"
"""Small logs, each with a fault that people have reported."""
SAMPLES = ROOT / "server" / "samples"
"""The sessions that `sapwood demo` loads."""
README = ROOT / "README.md"
DOCS = ROOT / "docs"
CONTRACT_SDL = ROOT / "tests" / "schema" / "contract.graphql"
"""The public API as first agreed."""
