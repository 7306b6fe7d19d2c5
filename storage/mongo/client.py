"""Opening a database by its URL."""

from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri

from storage import errors
from storage.mongo import failure, indexes
from storage.mongo.codec import Document
from storage.mongo.database import MongoDatabase

DEFAULT_DATABASE = "sapwood"
OLDEST = 6
"""Major version."""
SETTING = "SAPWOOD_DATABASE_URL"
TIMEOUTS = {"serverSelectionTimeoutMS": 3_000, "connectTimeoutMS": 3_000, "socketTimeoutMS": 20_000}
"""A request fails soon when the database is unreachable. Options in the URL override these."""
AUTHENTICATION_FAILED = frozenset({18, 8000})
UNAUTHORIZED = 13


async def open_url(url: str) -> MongoDatabase:
    """Opens the database that a `mongodb://` URL names, and creates its indexes.

    Raises StartupError, which says what to do.
    """
    try:
        parsed = parse_uri(url)
        options: dict[str, Any] = {"appname": "sapwood", **_timeouts(parsed)}
        client: AsyncIOMotorClient[Document] = AsyncIOMotorClient(url, **options)
    except (PyMongoError, ValueError, TypeError) as error:
        raise errors.StartupError(_malformed(url, error)) from None
    database = parsed["database"] or DEFAULT_DATABASE
    hosts = ",".join(f"{host}:{port}" if port else host for host, port in parsed["nodelist"])
    opened = MongoDatabase(client, database, f"MongoDB {hosts}, database {database}")
    try:
        await _check(client, hosts)
        await indexes.prepare(opened.documents)
    except PyMongoError as error:
        reason = _refused(client, error, hosts, database)
        await opened.close()
        raise errors.StartupError(reason) from error
    except BaseException:
        await opened.close()
        raise
    return opened


def _timeouts(parsed: Any) -> dict[str, int]:
    given = {name.lower() for name in parsed["options"]}
    return {name: value for name, value in TIMEOUTS.items() if name.lower() not in given}


async def _check(client: AsyncIOMotorClient[Document], hosts: str) -> None:
    hello = await client.admin.command("hello")
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise errors.StartupError(
            f"the MongoDB server at {hosts} is standalone, and so has neither transactions nor change streams: "
            "make it a replica set of one member (start mongod with --replSet rs0, then run rs.initiate() "
            "once in mongosh)"
        )
    version = (await client.admin.command("buildInfo"))["version"]
    if int(version.split(".")[0]) < OLDEST:
        raise errors.StartupError(
            f"the MongoDB server at {hosts} is version {version}: Sapwood needs {OLDEST}.0 or later, upgrade it"
        )


def _malformed(url: str, error: Exception) -> str:
    reason = "" if "@" in url else f" ({error})"
    return (
        f"{SETTING} is not a MongoDB URL{reason}: write mongodb://user:password@host:27017/database, with each "
        "special character of user and password percent-encoded (@ is %40, : is %3A, / is %2F)"
    )


def _refused(client: AsyncIOMotorClient[Document], error: PyMongoError, hosts: str, database: str) -> str:
    codes = failure.codes(error)
    if codes & AUTHENTICATION_FAILED or isinstance(error, ConfigurationError):
        return (
            f"the MongoDB server at {hosts} refuses the user or password: correct them in {SETTING}, and if the user "
            f"is not defined in the database {database}, name the right one with ?authSource=admin"
        )
    if UNAUTHORIZED in codes:
        return (
            f"the MongoDB server at {hosts} does not let this user work in the database {database}: put user and "
            f"password into {SETTING}, and grant the user the role readWrite on it"
        )
    if isinstance(error, OperationFailure):
        return f"the MongoDB server at {hosts} can't be used for the database {database}: {error.details or error}"
    topology: Any = client.topology_description
    servers = topology.server_descriptions()
    if any(server.server_type_name == "RSGhost" for server in servers.values()):
        return f"the MongoDB server at {hosts} is not initiated yet: run rs.initiate() once in mongosh"
    members = ",".join(sorted(f"{host}:{port}" for host, port in servers))
    if topology.topology_type_name.startswith("ReplicaSet") and members != ",".join(sorted(hosts.split(","))):
        return (
            f"no primary answers among {members}, which are the members that the MongoDB server at {hosts} names: make "
            f"these names reachable from here, or add directConnection=true to {SETTING}"
        )
    return f"no MongoDB server answers at {hosts}: start it, or correct host and port in {SETTING}"
