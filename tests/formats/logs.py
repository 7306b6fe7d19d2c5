"""The real logs under tests/data, and what to count in a reading of them."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from storage.formats import ForeignSession, Reading, read

DATA = Path(__file__).parent.parent / "data"
DEEPSEEK = tuple(sorted(str(path.relative_to(DATA)) for path in DATA.glob("deepseek-harness/*/*.jsonl")))
TAU_BENCH = "tau-bench/gpt-4o-airline.tasks00-24.json"
OASST = "oasst/en_100_tree.lines001-060.jsonl"
ALL = (*DEEPSEEK, TAU_BENCH, OASST)


def document(name: str) -> tuple[str, str]:
    return name, (DATA / name).read_bytes().decode()


def read_log(name: str) -> Reading:
    return read(*document(name))


def counts(sessions: Iterable[ForeignSession]) -> Counter[str]:
    return Counter(event.type for session in sessions for event in session.events)


def messages(sessions: Iterable[ForeignSession]) -> tuple[int, int, int, int]:
    """User, assistant, tool and system messages."""
    found = counts(sessions)
    return (found["user/message"], found["assistant/message"], found["tool/result"], found["system/message"])
