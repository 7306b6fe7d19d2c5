"""Durations of parsing and validation, recorded for the current request if its transport asks for them."""

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Phases:
    """Seconds spent on each step. A cached document is not parsed or validated again."""

    parse: float = 0.0
    validate: float = 0.0
    execute: float = 0.0


LISTENING: ContextVar[Phases | None] = ContextVar("phases", default=None)
"""Where this task, and the tasks it starts, record their steps."""


@contextlib.contextmanager
def parsing() -> Iterator[None]:
    """Time the parsing of a text."""
    began = time.perf_counter()
    try:
        yield
    finally:
        if (phases := LISTENING.get()) is not None:
            phases.parse += time.perf_counter() - began


@contextlib.contextmanager
def validating() -> Iterator[None]:
    """Time the validation of a document."""
    began = time.perf_counter()
    try:
        yield
    finally:
        if (phases := LISTENING.get()) is not None:
            phases.validate += time.perf_counter() - began
