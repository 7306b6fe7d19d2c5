"""Wake-ups: which session has changed, so that readers look again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notification:
    """Session `id` has changed. `kind` is log, session, node or slots; it wakes readers, and is never the truth.

    For a commit, `log` names its log, and `first` to `last` are its seqs. `lost` stands for unknown changes: every
    reader must look again.
    """

    kind: str
    space: str = ""
    id: str = ""
    log: str = ""
    first: int = 0
    last: int = -1

    @property
    def lost(self) -> bool:
        """Whether this stands for unknown changes."""
        return self.kind == "lost"


LOST = Notification("lost")
