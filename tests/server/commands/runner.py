"""Running commands as processes: ones that end by themselves, and servers."""

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
from tests.server.process import ADDRESS, SAPWOOD

SAMPLES = sorted(paths.SAMPLES.glob("*.jsonl"))
SECONDS = 600.0


def run(*arguments: str | Path, **given: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command that ends by itself."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SAPWOOD_")}
    variables |= {"COLUMNS": "200", "NO_COLOR": "1", **given.pop("variables", {})}
    return subprocess.run([SAPWOOD, *arguments], capture_output=True, text=True, env=variables, check=False, **given)


@contextmanager
def running(
    *arguments: str | Path, address: re.Pattern[str] = ADDRESS, **given: Any
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and the line in which it says where it listens. Ends it if it still runs afterwards."""
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
        process.communicate()


def url(line: str) -> str:
    found = ADDRESS.search(line)
    assert found is not None
    return found.group()


def end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> int:
    process.send_signal(how)
    return process.wait()


def ask(line: str, query: str) -> Any:
    return httpx.post(f"{url(line)}/graphql", json={"query": query}, timeout=None).json()["data"]
