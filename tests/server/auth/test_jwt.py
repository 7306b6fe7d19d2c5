"""JWTs as credentials: signed with a shared secret, or with a key that the issuer publishes."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from storage import access_keys
from storage.access_key import AccessRole
from storage.store import Store
from tests.server.client import IN_TIME, Client, Ended, Socket, authorization
from tests.server.commands.runner import run
from tests.server.conftest import Serve
from tests.server.process import Server

VIEWER = "{ viewer { space role } }"
SECRET = "a secret that only the issuer and this server know"
ISSUER, AUDIENCE = "https://id.example", "sapwood"
WHO = ("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE)
WITH_SECRET = ("--jwt-secret", SECRET, *WHO)


def claims(**given: Any) -> dict[str, Any]:
    """The claims of a valid token, apart from those given; None leaves one out."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time()) + 600, "space": "a", "role": "agent"}
    return {name: value for name, value in {**good, **given}.items() if value is not None}


def signed(**given: Any) -> str:
    return jwt.encode(claims(**given), SECRET, "HS256")


class Issuer:
    """An identity provider's JWKS, and tokens signed with its keys. While it is `away` it answers 503."""

    def __init__(self) -> None:
        self.away = False
        self._private: dict[str, rsa.RSAPrivateKey] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(503 if issuer.away else 200)
                self.end_headers()
                self.wfile.write(b"" if issuer.away else issuer.jwks())

            def log_message(self, *_: object) -> None:
                """Prints nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks"

    def add(self, kid: str) -> None:
        """Publishes a new key."""
        self._private[kid] = rsa.generate_private_key(65537, 2048)

    def jwks(self) -> bytes:
        published = []
        for kid, private in self._private.items():
            jwk = jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
            published.append({**jwk, "kid": kid, "use": "sig", "alg": "RS256"})
        return json.dumps({"keys": published}).encode()

    def public_pem(self, kid: str) -> bytes:
        return (
            self._private[kid]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    def signed(self, kid: str, **given: Any) -> str:
        return jwt.encode(claims(**given), self._private[kid], "RS256", {"kid": kid})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """These tests do not depend on the store, so one kind is enough."""
    return tmp_path / "data"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An identity provider with one key."""
    issuer = Issuer()
    issuer.add("one")
    thread = threading.Thread(target=issuer.server.serve_forever)
    thread.start()
    yield issuer
    issuer.server.shutdown()
    thread.join()
    issuer.server.server_close()


async def ask(server: Server, token: str | None) -> httpx.Response:
    async with httpx.AsyncClient(timeout=IN_TIME) as client:
        return await client.post(server.graphql, json={"query": VIEWER}, headers=authorization(token))


async def is_refused(server: Server, token: str | None, why: str = "") -> None:
    answer = await ask(server, token)
    assert answer.status_code == 401, answer.text
    [error] = answer.json()["errors"]
    assert error["extensions"] == {"code": "UNAUTHENTICATED"}
    assert why in error["message"]


async def opens(server: Server, token: str, space: str = "a", role: str = "AGENT") -> None:
    assert (await ask(server, token)).json()["data"] == {"viewer": {"space": space, "role": role}}


def unsigned(**given: Any) -> str:
    return jwt.encode(claims(**given), "", "none")


async def test_a_token_of_the_shared_secret_opens_its_space(serve: Serve) -> None:
    server = serve(*WITH_SECRET)
    await opens(server, signed())
    await opens(server, signed(space="b", role="ADMIN"), "b", "ADMIN")
    await opens(server, signed(aud=["other", AUDIENCE]))
    await opens(server, signed(iat=int(time()) + 30))
    async with Socket.open(server.socket, signed(role="viewer")) as socket:
        stream = await socket.subscribe('mutation { createSession(input: {id: "x"}) { session { id } } }')
        assert (await stream.refusal()).code == "FORBIDDEN"


async def test_a_token_that_is_not_for_this_server_is_refused(serve: Serve) -> None:
    server = serve(*WITH_SECRET)
    await is_refused(server, None)
    await is_refused(server, signed(exp=int(time()) - 1), "expired")
    await is_refused(server, signed(exp=None), "exp")
    await is_refused(server, signed(nbf=int(time()) + 600))
    await is_refused(server, signed(iss="https://other.example"))
    await is_refused(server, signed(iss=None))
    await is_refused(server, signed(aud="other"))
    await is_refused(server, signed(aud=None))
    await is_refused(server, jwt.encode(claims(), SECRET + "!", "HS256"), "Signature")
    await is_refused(server, unsigned(), "alg")
    await is_refused(server, signed()[:-3])
    await is_refused(server, signed() + ".x")
    for space in (None, "", "a/b", 1, ["a"], {"a": 1}):
        await is_refused(server, signed(space=space), "'space'")
    for role in (None, "", "king", 1, ["admin"]):
        await is_refused(server, signed(role=role), "'role'")


async def test_the_claims_can_be_named(serve: Serve) -> None:
    server = serve(*WITH_SECRET, "--jwt-space-claim", "https://a.example/tenant", "--jwt-role-claim", "may")
    await opens(server, signed(**{"https://a.example/tenant": "b", "may": "viewer"}), "b", "VIEWER")
    await is_refused(server, signed(), "'https://a.example/tenant'")


async def test_keys_open_beside_tokens(store: Store, serve: Serve) -> None:
    server = serve(*WITH_SECRET)
    made = await access_keys.create(store.database, "k", AccessRole.VIEWER)
    await opens(server, made.text, "k", "VIEWER")
    await opens(server, signed())


async def test_a_socket_is_closed_when_its_token_expires(serve: Serve) -> None:
    server = serve(*WITH_SECRET)
    end = int(time()) + 3
    async with Socket.open(server.socket, signed(exp=end)) as socket:
        stream = await socket.subscribe("subscription { spaceEvents { seq } }")
        with pytest.raises(Ended, match="4403"):
            await stream.next()
        assert time() >= end
        assert socket.connection.close_reason == "the credential has expired"


async def test_a_token_of_a_published_key_opens_its_space(serve: Serve, issuer: Issuer) -> None:
    server = serve("--jwt-jwks-url", issuer.url, *WHO)
    await opens(server, issuer.signed("one"))
    stranger = rsa.generate_private_key(65537, 2048)
    await is_refused(server, jwt.encode(claims(), stranger, "RS256", {"kid": "one"}), "Signature")
    await is_refused(server, jwt.encode(claims(), stranger, "RS256", {"kid": "other"}), "'other'")
    await is_refused(server, jwt.encode(claims(), stranger, "RS256"), "kid")
    await is_refused(server, unsigned(), "kid")
    await is_refused(server, signed(), "kid")
    await is_refused(server, jwt.encode(claims(), "x" * 32, "HS256", {"kid": "one"}))
    await is_refused(server, symmetric(issuer.public_pem("one")), "alg")
    await is_refused(server, issuer.signed("one", exp=int(time()) - 1), "expired")
    await is_refused(server, issuer.signed("one", aud="other"))


def symmetric(secret: bytes) -> str:
    """A token whose secret is the text of the public key, which a server that trusts `alg` would accept."""
    import base64
    import hashlib
    import hmac

    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    head = encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode())
    body = f"{head}.{encoded(json.dumps(claims()).encode())}"
    return f"{body}.{encoded(hmac.new(secret, body.encode(), hashlib.sha256).digest())}"


async def test_a_new_key_of_the_issuer_is_fetched_and_old_ones_stay_while_it_is_away(
    serve: Serve, issuer: Issuer
) -> None:
    server = serve("--jwt-jwks-url", issuer.url, *WHO)
    await opens(server, issuer.signed("one"))
    issuer.add("two")
    async with asyncio.timeout(IN_TIME):
        while (await ask(server, issuer.signed("two"))).status_code == 401:  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.2)
    await opens(server, issuer.signed("two"))
    issuer.away = True
    await opens(server, issuer.signed("one"))


async def test_while_the_issuer_cannot_be_reached_the_answer_is_to_try_again(serve: Serve, issuer: Issuer) -> None:
    issuer.away = True
    server = serve("--jwt-jwks-url", issuer.url, *WHO)
    answers = await asyncio.gather(*(ask(server, issuer.signed("one")) for _ in range(5)))
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["errors"][0]["extensions"] == {"code": "UNAVAILABLE"}
    issuer.away = False
    async with asyncio.timeout(IN_TIME):
        while (await ask(server, issuer.signed("one"))).status_code == 503:  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.2)
    async with Client(lambda: server.graphql, issuer.signed("one")) as client:
        assert await client.run(VIEWER) == {"viewer": {"space": "a", "role": "AGENT"}}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--jwt-secret", SECRET], "SAPWOOD_JWT_ISSUER"),
        (["--jwt-secret", SECRET, "--jwt-issuer", ISSUER], "SAPWOOD_JWT_AUDIENCE"),
        (["--jwt-secret", "short", *WHO], "SAPWOOD_JWT_SECRET has 5 bytes"),
        (["--jwt-secret", SECRET, "--jwt-jwks-url", "https://a.example/", *WHO], "both"),
        ([*WHO], "SAPWOOD_JWT_JWKS_URL"),
        (["--jwt-jwks-url", "file:///etc/passwd", *WHO], "SAPWOOD_JWT_JWKS_URL"),
        (["--jwt-jwks-url", "a.example", *WHO], "SAPWOOD_JWT_JWKS_URL"),
    ],
)
def test_settings_that_do_not_go_together_are_an_error(tmp_path: Path, options: list[str], named: str) -> None:
    done = run("serve", "--port", "0", "--data-dir", tmp_path, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert named in done.stderr and len(done.stderr.splitlines()) == 1
