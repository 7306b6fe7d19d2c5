"""The port: what a store must do, in a module for each thing that it serves.

Everything above is written once, against these protocols; `storage.sqlite` and `storage.mongo` implement them.
docs/stores.md says how to write another store.
"""

from storage.database.database import Database, Listener, Queries, Transaction, Work
from storage.database.forest import MOVED_FIELDS
from storage.database.log import Holders, MarkKind, MarkSpan
from storage.database.notification import LOST, Notification
from storage.database.sessions import Head

__all__ = [
    "LOST",
    "MOVED_FIELDS",
    "Database",
    "Head",
    "Holders",
    "Listener",
    "MarkKind",
    "MarkSpan",
    "Notification",
    "Queries",
    "Transaction",
    "Work",
]
