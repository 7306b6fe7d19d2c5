"""Trusted documents, in each of their forms."""

import hashlib
import json
from pathlib import Path

TEXT = "query Viewer { viewer { space } }"
TWO = "query One { viewer { role } }\n\nquery Two($n: Int!) { listSessions(first: $n) { ...Page } }\n"
FRAGMENTS = "fragment Page on SessionConnection { nodes { ...Row } }\n\nfragment Row on Session { id }\n"
PRINTED = """query Two($n: Int!) {
  listSessions(first: $n) {
    ...Page
  }
}

fragment Page on SessionConnection {
  nodes {
    ...Row
  }
}

fragment Row on Session {
  id
}"""
"""The operation `Two` as a client's compiler prints it, with its fragments."""
EVENTS = "subscription Events { spaceEvents { seq } }"


def hash_of(text: str) -> str:
    """The default id of a document."""
    return hashlib.sha256(text.encode()).hexdigest()


class Documents:
    """The same operations as a folder and as manifests."""

    def written(self, folder: Path) -> Path:
        """A nested folder of files with one operation, several, and none."""
        (folder / "below").mkdir(parents=True)
        (folder / "viewer.graphql").write_text(TEXT + "\n")
        (folder / "two.graphql").write_text(TWO)
        (folder / "below" / "fragments.graphql").write_text(FRAGMENTS)
        (folder / "below" / "events.graphql").write_text(EVENTS)
        (folder / "notes.txt").write_text("no document")
        return folder

    def relay(self, path: Path) -> Path:
        """As Relay's compiler writes it."""
        path.write_text(json.dumps({"v1": TEXT, "two": PRINTED}))
        return path

    def apollo(self, path: Path) -> Path:
        """As Apollo's tools write it."""
        operations = [
            {"id": id, "name": "x", "type": "query", "body": body} for id, body in (("v1", TEXT), ("two", PRINTED))
        ]
        manifest = {"format": "apollo-persisted-query-manifest", "version": 1, "operations": operations}
        path.write_text(json.dumps(manifest))
        return path


DOCUMENTS = Documents()
