"""The limits of the domain, as clients can ask for them. Each is enforced where its constant stands."""

from storage import admission, conversation_reading, database, reading, session, sessions, topology
from storage.cards import payload

ALL: dict[str, int] = {
    "eventsPerAppend": database.MAX_EVENTS,
    "bytesPerAppend": database.MAX_COMMIT_BYTES,
    "appendsPerBatch": sessions.MAX_BATCH,
    "openTurnsAndSteps": admission.MAX_OPEN,
    "slotBytes": session.MAX_SLOT_BYTES,
    "labelCharacters": session.MAX_LABEL,
    "forkSegments": session.MAX_SEGMENTS,
    "idsPerCall": sessions.MAX_IDS,
    "eventsPerPage": reading.MAX_PAGE_EVENTS,
    "eventPageBytes": reading.MAX_PAGE_BYTES,
    "entriesPerPage": conversation_reading.MAX_ENTRIES,
    "entryPageBytes": conversation_reading.MAX_BYTES,
    "cardBytesShown": payload.MAX_BYTES,
    "digestsPerPage": sessions.MAX_DIGESTS,
    "digestPageBytes": sessions.MAX_DIGEST_BYTES,
    "rowsPerPage": sessions.MAX_PAGE,
    "depth": topology.MAX_DEPTH,
    "nodesPerCascade": topology.MAX_CASCADE,
    "nodesPerMove": topology.MAX_MOVE,
}
