"""What readers of exported conversations share: a session each, with forks for its further branches."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.naming import SessionIds
from storage.transfer.formats.shared.records import Record
from storage.transfer.formats.shared.values import as_object

Models = dict[str, None]
"""Names of models in the order in which they answered."""
_NOTHING: tuple[Any, ...] = (None, [], {}, "")


class ConversationConverter(Protocol):
    """Makes the sessions of one conversation, with the key of the first. Raises BadInput for what is none."""

    def __call__(
        self, conversation: dict[str, Any], key: str, location: str, ids: SessionIds, warnings: ImportWarnings
    ) -> list[ForeignSession]: ...


class ConversationReader:
    """A session per conversation and a fork, not counted, per further branch."""

    def __init__(self, warnings: ImportWarnings, sessions: ConversationConverter) -> None:
        self._warnings = warnings
        self._sessions = sessions
        self._conversations = 0
        self._ids = SessionIds()

    def add(self, record: Record) -> Sequence[Step]:
        """The sessions of a conversation. Raises BadInput for what is none."""
        conversation = as_object(record.value, record.location)
        warnings = self._warnings.for_record()
        key = f"conversation-{self._conversations}"
        sessions = self._sessions(conversation, key, record.location, self._ids, warnings)
        self._warnings.include(warnings)
        self._conversations += 1
        return sessions

    def end(self) -> Sequence[Step]:
        """Nothing, as each conversation stands for itself."""
        return ()


def metadata_of(conversation: Mapping[str, Any], without: Collection[str], models: Models) -> dict[str, Any]:
    """What a conversation tells beside its messages, and the models that answered."""
    told = {name: value for name, value in conversation.items() if name not in without and value not in _NOTHING}
    return told | ({"models": list(models)} if models else {})
