"""The caller and the server, as clients can query them."""

from __future__ import annotations

from importlib.metadata import version

import strawberry

from schema.context import Info
from schema.engine import limits as query_limits
from schema.scalars import JSON
from storage import limits, text
from storage.access_key import AccessRole

SERVER_VERSION = version("sapwood")
LIMITS = JSON(text.to_json({**limits.ALL, **query_limits.ALL}, "limits"))


@strawberry.type
class Viewer:
    """The caller and the server."""

    space: str
    role: AccessRole
    server_version: str
    database: str
    limits: JSON


@strawberry.type
class ViewerQuery:
    """The query for the caller."""

    @strawberry.field(description="Who the caller is and what the server is.")
    def viewer(self, info: Info) -> Viewer:
        """The caller and the server."""
        context = info.context
        return Viewer(
            space=context.space,
            role=context.role,
            server_version=SERVER_VERSION,
            database=context.store.database.name,
            limits=LIMITS,
        )
