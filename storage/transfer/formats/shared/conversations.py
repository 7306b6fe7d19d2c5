"""A reader of exported conversations: one session each, with forks for further branches."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import override

from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.naming import SessionIds
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_object

Models = dict[str, None]
"""Names of models, in the order in which they first answered."""
_NOTHING: tuple[Any, ...] = (None, [], {}, "")


class ConversationConverter(Protocol):
    """Converts one conversation to sessions; `key` is that of the first. Raises BadInput if it is not one."""

    def __call__(
        self, conversation: dict[str, Any], key: str, location: str, ids: SessionIds, warnings: ImportWarnings
    ) -> list[ForeignSession]:
        """Return the sessions: that of the first path, then its forks."""


class ConversationReader(Reader):
    """Yields a session per conversation, and a fork, which does not count as a session, per further branch."""

    def __init__(self, warnings: ImportWarnings, sessions: ConversationConverter) -> None:
        self._warnings = warnings
        self._sessions = sessions
        self._conversations = 0
        self._ids = SessionIds()

    @property
    @override
    def reads_conversations(self) -> bool:
        return True

    def add(self, record: Record) -> Sequence[Step]:
        """Return the sessions of a conversation. Raises BadInput if the record is not one."""
        conversation = as_object(record.value, record.location)
        warnings = self._warnings.for_record()
        key = f"conversation-{self._conversations}"
        sessions = self._sessions(conversation, key, record.location, self._ids, warnings)
        self._warnings.include(warnings)
        self._conversations += 1
        return sessions

    def end(self) -> Sequence[Step]:
        """Return nothing: each record is a whole conversation."""
        return ()


def metadata_of(conversation: Mapping[str, Any], without: Collection[str], models: Models) -> dict[str, Any]:
    """Return the fields of a conversation other than its messages, and the models that answered."""
    metadata = {name: value for name, value in conversation.items() if name not in without and value not in _NOTHING}
    return metadata | ({"models": list(models)} if models else {})
