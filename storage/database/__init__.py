"""The port: what a store must do. Split by what it serves; composed here.

Everything above the port is written once, against these protocols; `storage.sqlite` and `storage.mongo` implement
them. docs/stores.md says how to write another one.
"""

from storage.database.log import LOST, Database, Head, Holders, Notification, Queries, Transaction

__all__ = ["LOST", "Database", "Head", "Holders", "Notification", "Queries", "Transaction"]
