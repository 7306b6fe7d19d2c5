"""The memory that `sapwood import` takes does not grow with the file."""

import contextlib
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.server.process import SAPWOOD
from tests.storage.transfer.formats.logs import CHATGPT_EXPORT, DATA

SMALL, LARGE = 20_000_000, 70_000_000
MORE = 40 * 1024
"""By how much the peaks may differ, in KiB, for files that differ by 50 MB: buffers fill, the heap fragments."""
POLL_SECONDS = 0.02
"""The pause between two measurements."""


def lines() -> Iterator[str]:
    """Lines of a long session of Codex."""
    first, *rest = (DATA / "codex/rollout-2026-05-11T11-26-55-019e1625.jsonl").read_text().splitlines(keepends=True)
    yield first
    yield from itertools.chain.from_iterable(itertools.repeat(rest))


def conversations() -> Iterator[str]:
    """A ChatGPT export with many conversations, on one line."""
    given = json.loads((DATA / CHATGPT_EXPORT).read_text(encoding="utf-8-sig"))
    yield "["
    for number in itertools.count():
        for conversation in given if isinstance(given, list) else [given]:
            named = {
                name: f"{value}-{number}" for name, value in conversation.items() if name in ("id", "conversation_id")
            }
            yield json.dumps({**conversation, **named}) + ","


def samples() -> Iterator[str]:
    """An Inspect log with many samples, on one line."""
    log: dict[str, Any] = json.loads((DATA / "inspect_ai/2025-05-12_browser.json").read_text())
    given = log.pop("samples")
    yield json.dumps(log)[:-1] + ', "samples": ['
    for number in itertools.count():
        for sample in given:
            yield json.dumps({**sample, "id": f"{sample['id']}-{number}", "uuid": f"{sample['uuid']}-{number}"}) + ","


def written(path: Path, parts: Iterator[str], size: int, end: str) -> Path:
    """Writes a file of about this size from these parts. The last part loses its comma."""
    with path.open("w") as file:
        for part in parts:
            done = file.tell() + len(part) >= size
            file.write(part.rstrip(",") if done else part)
            if done:
                break
        file.write(end)
    return path


def imported(path: Path) -> tuple[int, int]:
    """Imports a file. Returns the peak memory of both processes together, in KiB, and the number of events.

    Memory that both share counts once, on systems that can tell.
    """
    summary = path.with_suffix(".report")
    with summary.open("w") as report:
        command: list[str | Path] = [SAPWOOD, "import", "--json", "--data-dir", f"{path}-data", path]
        process = subprocess.Popen(command, stdout=report)
        peak = 0
        while process.poll() is None:
            peak = max(peak, taken(psutil.Process(process.pid)))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
    assert process.returncode == 0
    return peak // 1024, sum(each["events"] for each in json.loads(summary.read_text())["imported"])


def taken(process: psutil.Process) -> int:
    found = 0
    with contextlib.suppress(psutil.Error):  # the process has just ended
        for each in (process, *process.children()):
            memory = each.memory_full_info()
            found += getattr(memory, "pss", memory.rss)
    return found


@pytest.mark.parametrize(("parts", "end"), [(lines, ""), (conversations, "]"), (samples, "]}")])
def test_importing_a_large_file_takes_no_more_memory_than_a_small_one(
    tmp_path: Path, parts: Callable[[], Iterator[str]], end: str
) -> None:
    small, few = imported(written(tmp_path / "small.json", parts(), SMALL, end))
    large, many = imported(written(tmp_path / "large.json", parts(), LARGE, end))
    assert many > 3 * few > 0
    assert large < small + MORE


@pytest.mark.parametrize(("count", "words", "end"), [(4, 2_500_000, ""), (12, 1_000_000, "\U0001f600")])
def test_importing_large_records_stays_within_the_promised_memory(
    tmp_path: Path, count: int, words: int, end: str
) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for number in range(count):
            message = {"role": "user", "content": f"word {number} " * words + end}
            record = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "long"}
            file.write(json.dumps({**record, "timestamp": "2026-01-01T00:00:00Z", "type": "user", "message": message}))
            file.write("\n")
    peak, events = imported(path)
    assert events == count * 2 + (count - 1)
    assert peak < 300 * 1024
