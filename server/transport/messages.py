"""The messages of graphql-transport-ws: parsing and encoding.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import json
from dataclasses import dataclass
from typing import Any

from server.transport import body
from server.transport.request import Request
from storage import errors

PROTOCOL = "graphql-transport-ws"
ACK = '{"type":"connection_ack"}'


class Close(Exception):
    """The socket must be closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Init:
    """connection_init."""

    payload: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Ping:
    """ping."""

    payload: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Pong:
    """pong."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """subscribe."""

    id: str
    request: Request


@dataclass(frozen=True, slots=True)
class Complete:
    """complete."""

    id: str


def read(text: str | bytes) -> Init | Ping | Pong | Subscribe | Complete:
    """Parses a client's message. Raises Close with 4400 if it is invalid."""
    try:
        message = body.decode(text)
    except json.JSONDecodeError:
        raise _invalid("it is not JSON") from None
    if not isinstance(message, dict):
        raise _invalid("it is not an object")
    payload = message.get("payload")
    match message.get("type"):
        case "connection_init" | "ping" | "pong" as kind:
            if payload is not None and not isinstance(payload, dict):
                raise _invalid("its payload is not an object")
            return Init(payload) if kind == "connection_init" else Ping(payload) if kind == "ping" else Pong()
        case "subscribe":
            id = _id(message)
            try:
                return Subscribe(id, Request.of(payload))
            except errors.BadInput as error:
                raise _invalid(error.message) from error
        case "complete":
            return Complete(_id(message))
    raise _invalid("its type is not one that clients send")


def _id(message: dict[str, Any]) -> str:
    id = message.get("id")
    if not isinstance(id, str) or not id:
        raise _invalid("its id must be a non-empty string")
    return id


def _invalid(why: str) -> Close:
    return Close(4400, f"Invalid message received: {why}")


def pong(payload: dict[str, Any] | None) -> str:
    """The reply to a ping."""
    message = {"type": "pong"} if payload is None else {"type": "pong", "payload": payload}
    try:
        return _text(message)
    except TypeError:  # integers of more than 64 bits, or nested deeper than 254
        return json.dumps(message)


def next_result(id: str, result: dict[str, Any]) -> str:
    """One result of an operation."""
    return _text({"id": id, "type": "next", "payload": result})


def error(id: str, refusal: dict[str, Any]) -> str:
    """The errors of an operation that was refused, its last message."""
    return _text({"id": id, "type": "error", "payload": refusal["errors"]})


def complete(id: str) -> str:
    """The end of an operation, its last message."""
    return _text({"id": id, "type": "complete"})


def _text(message: dict[str, Any]) -> str:
    return body.encode(message).decode()
