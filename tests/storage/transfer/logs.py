"""Logs in our own format."""

import json
from pathlib import Path
from typing import Any

from storage.text import format_instant
from storage.transfer.parsing.serving import BATCH_WEIGHT


def log(folder: Path, id: str, *contents: str, **header: Any) -> Path:
    """Writes a log in our own format with a message for each content."""
    path = folder / f"{id}.jsonl"
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    lines = [
        {"seq": seq, "type": "user/message", "timestamp": format_instant(seq), "content": content}
        for seq, content in enumerate(contents)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return path


def long_log(folder: Path, id: str, frames: int, **header: Any) -> Path:
    """A log that takes at least this many frames."""
    return log(folder, id, *["x" * BATCH_WEIGHT] * frames, **header)
