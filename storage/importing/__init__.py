"""Bringing logs of other agents and servers into a space.

`stream` takes a document record by record, `follow` one that grows; both hand steps to the `engine`, which finds or
makes the sessions and has a `log` for each, compared with or appended to what the `target` holds.
"""

from storage.importing.engine import Import, Imported, NotYet, import_reading
from storage.importing.target import Target

__all__ = ["Import", "Imported", "NotYet", "Target", "import_reading"]
