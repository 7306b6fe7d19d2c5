"""Parts of the large real logs, for stores on which importing them whole takes minutes."""

import json

from storage.store import Store
from tests.effort import thorough
from tests.storage.transfer.formats.logs import DATA, OASST, TAU_BENCH

TREES = 8
TASKS = 6


def suited(store: Store, name: str) -> bytes | None:
    """The first trees or tasks of a large log where the whole of it takes long; None where it is read whole."""
    if thorough(store):
        return None
    content = (DATA / name).read_bytes()
    if name == OASST:
        return b"".join(content.splitlines(keepends=True)[:TREES])
    if name == TAU_BENCH:
        return json.dumps([trial for trial in json.loads(content) if trial["task_id"] < TASKS]).encode()
    return None
