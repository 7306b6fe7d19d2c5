"""What the next request to a model would contain: system prompt, insight, surface."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.events import InsightDelivered, JsonText
from storage.session import Slot
from storage.views import openai
from storage.views.message import Message, Role
from storage.views.surface import Surface


@dataclass(frozen=True, slots=True)
class PromptContext:
    """`messages` are the surface's; `openai` is all of it in sending order, JSON of the chat completions API."""

    system_prompt: str | None
    insight: Slot | None
    messages: Sequence[Message]
    openai: JsonText
    at_seq: int


def context(surface: Surface, system_prompt: str | None, pending: Slot | None) -> PromptContext:
    """The context at the surface's head. `pending` is the insight's slot, cleared or not.

    It holds the insight that was last delivered in a turn still open, so that a runtime that crashed after consuming it
    gets the same context again; without one, the pending insight. An empty system prompt is not sent.
    """
    delivered = surface.delivered()
    insight = _present(pending) if delivered is None else _as_slot(delivered)
    leading = [content for content in (system_prompt, insight and insight.content) if content]
    sent = [openai.as_object(Message(Role.SYSTEM, content)) for content in leading]
    return PromptContext(
        system_prompt=system_prompt,
        insight=insight,
        messages=surface.messages(),
        openai=openai.as_array([*sent, *surface.openai()]),
        at_seq=surface.head,
    )


def _present(slot: Slot | None) -> Slot | None:
    return None if slot is None or slot.cleared or slot.content is None else slot


def _as_slot(event: InsightDelivered) -> Slot:
    """The slot that was delivered: its content and version, and the time and seq of the delivery."""
    return Slot(content=event.content, version=event.version, updated_at=event.timestamp or 0, at_seq=event.seq)
