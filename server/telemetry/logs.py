"""The log of this process, uvicorn's lines included, for people or as JSON for machines."""

import logging
import sys
from contextvars import ContextVar

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

LONGEST_NAME = 64
OPERATION: ContextVar[tuple[str, str | None] | None] = ContextVar("operation", default=None)
"""Kind and name of the operation that the current task runs."""


def _with_operation(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the current operation."""
    if (operation := OPERATION.get()) is not None:
        kind, name = operation
        event["kind"] = kind
        event["operation"] = None if name is None else name[:LONGEST_NAME]
    return event


def _without_colors(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Drops uvicorn's second, colored copy of a message."""
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
"""Processors that add what every line has beside its message."""


def configure(level: str, style: str) -> None:
    """Writes everything logged at `level` or above to stderr, in this process. `style` is console or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=NAMED, processors=_rendering(style)))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _rendering(style: str) -> list[Processor]:
    forget: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if style == "json":
        # "message" is the usual key; structlog's is "event".
        rename = structlog.processors.EventRenamer("message")
        return [forget, structlog.processors.format_exc_info, rename, structlog.processors.JSONRenderer()]
    # Plain tracebacks leave out the values of variables, which users may have written.
    plain = structlog.dev.plain_traceback
    return [forget, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
