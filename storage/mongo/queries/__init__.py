"""Reading documents, in a module for each part of the port.

Outside of a transaction, of what a majority has committed; inside, of the transaction's snapshot.
"""

from storage.database import Queries
from storage.mongo.queries.forest import MongoForestQueries
from storage.mongo.queries.keys import MongoKeyQueries
from storage.mongo.queries.log import MongoLogQueries
from storage.mongo.queries.maintenance import MongoMaintenanceQueries
from storage.mongo.queries.runs import MongoRunQueries
from storage.mongo.queries.sessions import MongoSessionQueries
from storage.mongo.queries.slots import MongoSlotQueries


class MongoQueries(
    MongoLogQueries,
    MongoSessionQueries,
    MongoForestQueries,
    MongoSlotQueries,
    MongoRunQueries,
    MongoKeyQueries,
    MongoMaintenanceQueries,
    Queries,
):
    """All queries, inside the transaction of `session` if there is one."""
