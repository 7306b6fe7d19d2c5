"""Logs of this process, uvicorn's and our own, as lines for people or as JSON for machines."""

import logging
import sys
from contextvars import ContextVar

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

LONGEST_NAME = 64
OPERATION: ContextVar[tuple[str, str | None] | None] = ContextVar("operation", default=None)
"""Kind and name of the operation that this task runs."""


def _with_operation(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Names the operation that a line is about."""
    if (operation := OPERATION.get()) is not None:
        kind, name = operation
        event["kind"] = kind
        event["operation"] = None if name is None else name[:LONGEST_NAME]
    return event


def _without_colors(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Forgets what uvicorn says twice."""
    event.pop("color_message", None)
    return event


NAMED: tuple[Processor, ...] = (
    _with_operation,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _without_colors,
)
"""What every line gets, beside its message."""


def configure(level: str, style: str) -> None:
    """Has everything that is logged from `level` on written to stderr. `style` is console or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=NAMED, processors=_last(style)))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _last(style: str) -> list[Processor]:
    forget: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if style == "json":
        # The message has its usual name, and a traceback is text.
        rename = structlog.processors.EventRenamer("message")
        return [forget, structlog.processors.format_exc_info, rename, structlog.processors.JSONRenderer()]
    # A traceback must not show the values of variables: they hold what users wrote.
    plain = structlog.dev.plain_traceback
    return [forget, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
