"""Reading documents of the file, in a module for each part of the port."""

from storage.database import Queries
from storage.sqlite.queries.forest import SqliteForestQueries
from storage.sqlite.queries.keys import SqliteKeyQueries
from storage.sqlite.queries.log import SqliteLogQueries
from storage.sqlite.queries.maintenance import SqliteMaintenanceQueries
from storage.sqlite.queries.runs import SqliteRunQueries
from storage.sqlite.queries.sessions import SqliteSessionQueries
from storage.sqlite.queries.slots import SqliteSlotQueries


class SqliteQueries(
    SqliteLogQueries,
    SqliteSessionQueries,
    SqliteForestQueries,
    SqliteSlotQueries,
    SqliteRunQueries,
    SqliteKeyQueries,
    SqliteMaintenanceQueries,
    Queries,
):
    """All queries over one connection."""
