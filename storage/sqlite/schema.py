"""The tables of the file. Documents are JSON, beside the few columns that queries look them up by.

Triggers record each change in `changes`, so that other processes on the same file can follow. Its rows are wake-ups
only, and old ones are dropped.
"""

import sqlite3

from storage import errors
from storage.sqlite.queries.log import HIDES

VERSION = 2

STATEMENTS = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('clock', 0);

CREATE TABLE spaces (space TEXT PRIMARY KEY, roots INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, last_event_at INTEGER, status TEXT NOT NULL, behind INTEGER NOT NULL,
    label TEXT NOT NULL, head INTEGER NOT NULL, log TEXT NOT NULL, own_start INTEGER NOT NULL,
    creation_key TEXT, doc TEXT NOT NULL
);
CREATE UNIQUE INDEX sessions_id ON sessions (space, id);
CREATE UNIQUE INDEX sessions_key ON sessions (space, creation_key) WHERE creation_key IS NOT NULL;
CREATE INDEX sessions_created ON sessions (space, created_at, id);
CREATE INDEX sessions_updated ON sessions (space, updated_at, id);

CREATE TABLE segments (log TEXT, session INTEGER, upto INTEGER, PRIMARY KEY (log, session)) WITHOUT ROWID;
CREATE INDEX segments_session ON segments (session);

CREATE TABLE nodes (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, place INTEGER NOT NULL,
    doc TEXT NOT NULL
);
CREATE UNIQUE INDEX nodes_id ON nodes (space, id);
CREATE INDEX nodes_parent ON nodes (space, parent, place);

CREATE TABLE refs (space TEXT, target TEXT, source TEXT, PRIMARY KEY (space, target, source)) WITHOUT ROWID;
CREATE INDEX refs_source ON refs (space, source);

CREATE TABLE commits (
    key INTEGER PRIMARY KEY, log TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    types INTEGER NOT NULL, size INTEGER NOT NULL, idempotency_key TEXT, space TEXT NOT NULL, session TEXT NOT NULL,
    doc TEXT NOT NULL
);
CREATE UNIQUE INDEX commits_first ON commits (log, first);
CREATE INDEX commits_hides ON commits (log, first) WHERE types & {HIDES};
CREATE UNIQUE INDEX commits_key ON commits (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE starts (
    kind TEXT NOT NULL, mark TEXT NOT NULL, log TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (kind, mark, seq)
) WITHOUT ROWID;
CREATE INDEX starts_log ON starts (log, seq);

CREATE TABLE slots (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL, doc TEXT NOT NULL
);
CREATE UNIQUE INDEX slots_id ON slots (space, id);
CREATE INDEX slots_created ON slots (space, created_at, id);

CREATE TABLE forms (space TEXT, id TEXT, doc TEXT NOT NULL, PRIMARY KEY (space, id)) WITHOUT ROWID;
CREATE TABLE runs (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, session TEXT NOT NULL, turn TEXT NOT NULL,
    started_at INTEGER NOT NULL, place TEXT NOT NULL, status TEXT NOT NULL, agent_flow TEXT, feedback TEXT,
    duration_ms REAL, doc TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_turn ON runs (space, session, turn);
CREATE INDEX runs_started ON runs (space, started_at, place);
CREATE INDEX runs_session ON runs (space, session, started_at, place);
CREATE INDEX runs_status ON runs (space, status, started_at, place);
CREATE INDEX runs_feedback ON runs (space, feedback, started_at, place) WHERE feedback IS NOT NULL;

CREATE TABLE run_names (
    space TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, started_at INTEGER NOT NULL, place TEXT NOT NULL,
    run INTEGER NOT NULL, PRIMARY KEY (space, kind, name, started_at, place, run)
) WITHOUT ROWID;
CREATE INDEX run_names_run ON run_names (run);
CREATE TABLE keys (id TEXT PRIMARY KEY, space TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, space TEXT NOT NULL, id TEXT NOT NULL,
    log TEXT NOT NULL DEFAULT '', first INTEGER NOT NULL DEFAULT 0, last INTEGER NOT NULL DEFAULT -1
);

CREATE TRIGGER commit_made AFTER INSERT ON commits BEGIN
    INSERT INTO changes (kind, space, id, log, first, last)
    VALUES ('log', new.space, new.session, new.log, new.first, new.last);
END;
CREATE TRIGGER session_made AFTER INSERT ON sessions BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('session', new.space, new.id);
END;
CREATE TRIGGER session_changed AFTER UPDATE ON sessions WHEN new.head = old.head BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('session', new.space, new.id);
END;
CREATE TRIGGER session_deleted AFTER DELETE ON sessions BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('session', old.space, old.id);
END;
CREATE TRIGGER node_made AFTER INSERT ON nodes BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('node', new.space, new.id);
END;
CREATE TRIGGER node_changed AFTER UPDATE ON nodes BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('node', new.space, new.id);
END;
CREATE TRIGGER node_deleted AFTER DELETE ON nodes BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('node', old.space, old.id);
END;
CREATE TRIGGER slots_changed AFTER UPDATE ON slots BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('slots', new.space, new.id);
END;
CREATE TRIGGER slots_made AFTER INSERT ON slots BEGIN
    INSERT INTO changes (kind, space, id) VALUES ('slots', new.space, new.id);
END;
"""


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Creates the tables in a new file. Raises StartupError for a file of another version or another program."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if 0 < version < VERSION:
        raise errors.StartupError(
            f"{path} was written by an earlier pre-release of Sapwood (schema version {version}, this one knows "
            f"{VERSION}): export its sessions with that one, and import them here into another folder"
        )
    if version > VERSION:
        raise errors.StartupError(
            f"{path} was written by a newer Sapwood (schema version {version}, this one knows {VERSION}): "
            "install that version, or name another folder with SAPWOOD_DATA_DIR"
        )
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise errors.StartupError(
                    f"{path} is an SQLite file of another program: name another folder with SAPWOOD_DATA_DIR"
                )
            for statement in _statements():
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _statements() -> list[str]:
    found, pending = [], ""
    for line in STATEMENTS.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return [statement for statement in found if statement.strip()]
