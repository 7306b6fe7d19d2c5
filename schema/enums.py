"""The enums of the API. The domain's enums are published unchanged."""

from enum import Enum

import strawberry

from storage.access_key import AccessRole
from storage.events import ChunkKind, RunStatus, SurfaceOpKind
from storage.session import SessionOrder, SessionStatus, SlotName
from storage.slots import InsightMode
from storage.transfer.export import ExportFormat
from storage.views.message import Role

PUBLISHED: tuple[type[Enum], ...] = (
    AccessRole,
    ChunkKind,
    ExportFormat,
    InsightMode,
    Role,
    RunStatus,
    SessionOrder,
    SessionStatus,
    SlotName,
    SurfaceOpKind,
)
for domain_enum in PUBLISHED:
    strawberry.enum(domain_enum)


@strawberry.enum(description="In log files and exports the same types are spelled turn/start, user/message and so on.")
class EventType(Enum):
    """Event types; the values are their wire names."""

    TURN_START = "turn/start"
    TURN_END = "turn/end"
    STEP_START = "step/start"
    STEP_END = "step/end"
    USER_MESSAGE = "user/message"
    ASSISTANT_MESSAGE = "assistant/message"
    ASSISTANT_CHUNK = "assistant/chunk"
    SYSTEM_MESSAGE = "system/message"
    TOOL_CALL = "tool/call"
    TOOL_RESULT = "tool/result"
    CARD = "card"
    SURFACE_HIDE = "surface/hide"
    INSIGHT_DELIVERED = "insight/delivered"
    RUN_FEEDBACK = "run/feedback"
    CUSTOM = "custom"


@strawberry.enum
class ForkContext(Enum):
    """Whether a fork shares the source's events."""

    INHERIT = "INHERIT"
    NONE = "NONE"
