"""The limits of the domain that clients can query. Each is enforced where its constant is defined."""

from storage import digests, session, session_storage, topology
from storage.cards import payload
from storage.log import admission, commit, reading
from storage.readers import conversation

ALL: dict[str, int] = {
    "eventsPerAppend": commit.MAX_EVENTS,
    "bytesPerAppend": commit.MAX_COMMIT_BYTES,
    "appendsPerBatch": session_storage.MAX_BATCH,
    "openTurnsAndSteps": admission.MAX_OPEN,
    "slotBytes": session.MAX_SLOT_BYTES,
    "labelCharacters": session.MAX_LABEL,
    "forkSegments": session.MAX_SEGMENTS,
    "idsPerCall": session_storage.MAX_IDS,
    "eventsPerPage": reading.MAX_PAGE_EVENTS,
    "eventPageBytes": reading.MAX_PAGE_BYTES,
    "entriesPerPage": conversation.MAX_ENTRIES,
    "entryPageBytes": conversation.MAX_BYTES,
    "cardBytesShown": payload.MAX_BYTES,
    "digestsPerPage": digests.MAX_DIGESTS,
    "digestPageBytes": digests.MAX_DIGEST_BYTES,
    "rowsPerPage": session_storage.MAX_PAGE,
    "depth": topology.MAX_DEPTH,
    "nodesPerCascade": topology.MAX_CASCADE,
    "nodesPerMove": topology.MAX_MOVE,
}
