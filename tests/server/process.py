"""A server as a process of its own on a free port of this machine."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

SAPWOOD = Path(sys.executable).with_name("sapwood")
START_SECONDS = 300.0
"""Bound for a start, even on a busy machine."""
END_SECONDS = 120.0
"""Bound for a shutdown."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def at(location: Path | str) -> list[str]:
    """The options that name a folder or the URL of a database."""
    return ["--data-dir", str(location)] if isinstance(location, Path) else ["--database-url", location]


class Server:
    """A `sapwood serve` process on a store's data, with further options. Each start takes a new port."""

    def __init__(self, location: Path | str, log: Path, *options: str) -> None:
        self._location = location
        self._options = options
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    @property
    def graphql(self) -> str:
        """The endpoint for requests."""
        return f"{self.url}/graphql"

    @property
    def socket(self) -> str:
        """The endpoint for subscriptions."""
        return urlsplit(self.graphql)._replace(scheme="ws").geturl()

    @property
    def process(self) -> psutil.Process:
        """The process, for measurements and limits."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    @property
    def output(self) -> str:
        """The output of all starts."""
        return self._log.read_text()

    def start(self) -> None:
        """Starts the process and returns once it has printed its address."""
        begin = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [SAPWOOD, "serve", "--port", "0", *at(self._location), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while (found := ADDRESS.search(self.output[begin:])) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.end(signal.SIGKILL)
                raise RuntimeError(f"the server did not start: {self.output[-2000:]}")
            time.sleep(0.02)
        self.url = found.group()

    def ready(self) -> tuple[int, dict[str, object]]:
        """The status and the body of the server's readiness."""
        answer = httpx.get(f"{self.url}/readyz", timeout=START_SECONDS, verify=False)
        return answer.status_code, answer.json()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends the process, if it runs, and returns its exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            return self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_SECONDS)
            raise
        finally:
            self._process = None

    def kill(self) -> None:
        """Ends the process at once, as a crash does."""
        self.end(signal.SIGKILL)
