"""What readers of exported conversations share: a session each, with forks for its further branches."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.naming import OwnIds
from storage.transfer.formats.records import Record
from storage.transfer.formats.values import as_object

Models = dict[str, None]
"""Names of models in the order in which they answered."""
_NOTHING: tuple[Any, ...] = (None, [], {}, "")


class ToSessions(Protocol):
    """Makes the sessions of one conversation, with the key of the first. Raises BadInput for what is none."""

    def __call__(
        self, conversation: dict[str, Any], key: str, place: str, ids: OwnIds, losses: ImportWarnings
    ) -> list[ForeignSession]: ...


class Conversations:
    """A session per conversation and a fork, not counted, per further branch."""

    def __init__(self, losses: ImportWarnings, sessions: ToSessions) -> None:
        self._losses = losses
        self._sessions = sessions
        self._conversations = 0
        self._ids = OwnIds()

    def add(self, record: Record) -> Sequence[Step]:
        """The sessions of a conversation. Raises BadInput for what is none."""
        conversation = as_object(record.value, record.place)
        losses = self._losses.apart()
        key = f"conversation-{self._conversations}"
        sessions = self._sessions(conversation, key, record.place, self._ids, losses)
        self._losses.include(losses)
        self._conversations += 1
        return sessions

    def end(self) -> Sequence[Step]:
        """Nothing, as each conversation stands for itself."""
        return ()


def facts_of(conversation: Mapping[str, Any], without: Collection[str], models: Models) -> dict[str, Any]:
    """What a conversation tells beside its messages, and the models that answered."""
    told = {name: value for name, value in conversation.items() if name not in without and value not in _NOTHING}
    return told | ({"models": list(models)} if models else {})
