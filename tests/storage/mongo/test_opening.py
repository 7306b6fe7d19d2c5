"""A database that can't be used is refused at the start. The error says what to do and never shows a password."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest
from pymongo.errors import PyMongoError

from storage import errors
from storage.mongo.client import open_url
from tests.conftest import _free_port

StartServer = Callable[..., str]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts SecantusDB with options and returns its `host:port`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> str:
        address = f"127.0.0.1:{_free_port()}"
        command = [str(Path(sys.executable).with_name("secantusd-py")), "--port", address.split(":")[1]]
        server = subprocess.Popen(
            [*command, "--storage-path", tmp_path / "data", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(server)
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            f"mongodb://{address}", serverSelectionTimeoutMS=200, directConnection=True
        )
        with client:
            for _ in range(100):
                try:
                    client.admin.command("hello")
                except PyMongoError:
                    time.sleep(0.05)
                else:
                    return address
        raise RuntimeError("SecantusDB did not start")

    yield start
    for server in started:
        server.kill()
        server.wait()


def set_version(url: str, version: int) -> None:
    """Makes the documents of a database look like those of another schema version."""
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
    with client:
        client.get_default_database()["meta"].update_one({"_id": "schema"}, {"$set": {"version": version}})


async def refusal(url: str) -> str:
    with pytest.raises(errors.StartupError) as refused:
        await open_url(url)
    assert "s3cret" not in str(refused.value)
    return str(refused.value)


async def test_a_standalone_server(start_server: StartServer) -> None:
    assert "rs.initiate()" in await refusal(f"mongodb://{start_server('--standalone')}")


async def test_a_wrong_password(start_server: StartServer) -> None:
    message = await refusal(f"mongodb://someone:s3cret@{start_server('--auth')}/sapwood")
    assert "user or password" in message
    assert "authSource" in message


async def test_no_password(start_server: StartServer) -> None:
    assert "password" in await refusal(f"mongodb://{start_server('--auth')}/sapwood")


async def test_no_server() -> None:
    address = f"127.0.0.1:{_free_port()}"
    message = await refusal(f"mongodb://someone:s3cret@{address}/sapwood")
    assert address in message
    assert "start it" in message


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://",
        "mongodb://someone:s3cret@",
        "mongodb://someone:s3cret@host:port",
        "mongodb://some:one:s3cret@host",
        "mongodb://someone:s3cret/@host",
        "mongodb://host/a b?w=",
        "http://someone:s3cret@host",
    ],
)
async def test_a_malformed_url(url: str) -> None:
    assert "mongodb://user:password@host:27017/database" in await refusal(url)


@pytest.mark.parametrize(("version", "named"), [(99, "newer Sapwood"), (1, "pre-release of Sapwood")])
async def test_documents_of_another_version(mongodb_database: str, version: int, named: str) -> None:
    await (await open_url(mongodb_database)).close()
    set_version(mongodb_database, version)
    assert named in await refusal(mongodb_database)


async def test_documents_of_a_pre_release(mongodb_database: str) -> None:
    await (await open_url(mongodb_database)).close()
    set_version(mongodb_database, 1)
    assert "was written by an earlier pre-release" in await refusal(mongodb_database)


async def test_the_name_has_no_credentials(mongodb_database: str) -> None:
    database = await open_url(mongodb_database)
    assert database.name.startswith("MongoDB 127.0.0.1:")
    assert database.name.endswith(urlsplit(mongodb_database).path.strip("/"))
    await database.close()
