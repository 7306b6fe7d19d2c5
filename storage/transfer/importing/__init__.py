"""Importing logs of other agents and servers into a space.

`stream` reads a document as it is parsed (`storage.transfer.parsing`); `follow` reads one that grows, also after a
rename while it is `held` open. Both pass steps to the `engine`, which keeps a `log` for each session and compares it
with, or appends it to, what the `target` holds. The `resolver` finds or creates the sessions.
"""

from storage.transfer.importing.engine import Import, NotYet, has_to_wait, import_reading
from storage.transfer.importing.resolver import Imported
from storage.transfer.importing.target import Target

__all__ = ["Import", "Imported", "NotYet", "Target", "has_to_wait", "import_reading"]
