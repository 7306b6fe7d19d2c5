"""Commands as processes: ones that end by themselves, and servers that go on."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests import paths
from tests.server.client import IN_TIME
from tests.server.process import ADDRESS, SAPWOOD

SAMPLES = sorted(paths.SAMPLES.glob("*.jsonl"))
SECONDS = 600.0


def where(place: Path | str) -> list[str]:
    return ["--data-dir", str(place)] if isinstance(place, Path) else ["--database-url", place]


def run(*arguments: str | Path, **given: Any) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SAPWOOD_")}
    variables |= {"COLUMNS": "200", "NO_COLOR": "1", **given.pop("variables", {})}
    return subprocess.run(
        [SAPWOOD, *arguments], capture_output=True, text=True, timeout=SECONDS, env=variables, check=False, **given
    )


@contextmanager
def running(
    *arguments: str | Path, address: re.Pattern[str] = ADDRESS, **given: Any
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that has said where it listens, and what it said; ended after the test if it still runs."""
    process = subprocess.Popen(
        [SAPWOOD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert address.search(line), line + (process.stderr.read() if process.stderr else "")
        yield process, line
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=SECONDS)


def url(line: str) -> str:
    found = ADDRESS.search(line)
    assert found is not None
    return found.group()


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> int:
    process.send_signal(how)
    return process.wait(SECONDS)


def ask(line: str, query: str) -> Any:
    return httpx.post(f"{url(line)}/graphql", json={"query": query}, timeout=IN_TIME).json()["data"]
