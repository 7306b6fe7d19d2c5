"""Importing the logs of other agents and servers into a space.

`stream` imports a document while it is parsed (`storage.transfer.parsing`). `follow` imports a file that grows; if it
is renamed meanwhile, `held` still has it open. Both pass steps to the `engine`, which keeps a `log` for each `session`
and compares it with, or appends it to, what the `target` holds. The `resolver` finds or creates the sessions, and the
`result` counts what was done. A `dry_run` does all of it in a scratch store.
"""

from storage.transfer.importing.engine import Import, MissingSessions, import_reading, missing_sessions
from storage.transfer.importing.result import ImportResult
from storage.transfer.importing.target import Target

__all__ = ["Import", "ImportResult", "MissingSessions", "Target", "import_reading", "missing_sessions"]
