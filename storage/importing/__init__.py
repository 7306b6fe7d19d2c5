"""Bringing logs of other agents and servers into a space.

`stream` takes a document as it is parsed (`storage.parsing`), `follow` one that grows, also when it is renamed, as long
as it is `kept` open; both hand steps to the `engine`, which has a `log` for each session, compared with or appended to
what the `target` holds; `places` finds the sessions or makes them.
"""

from storage.importing.engine import Import, NotYet, has_to_wait, import_reading
from storage.importing.places import Imported
from storage.importing.target import Target

__all__ = ["Import", "Imported", "NotYet", "Target", "has_to_wait", "import_reading"]
