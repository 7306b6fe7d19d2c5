"""Reading documents: of what a majority has committed, or of a transaction's snapshot."""

from storage.mongo.queries.sessions import AT_ONCE, MongoQueries, chunks

__all__ = ["AT_ONCE", "MongoQueries", "chunks"]
