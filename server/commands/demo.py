"""`sapwood demo`: a server with sample sessions, one of which is live."""

import asyncio
import sys
from urllib.parse import quote

from server import frontend
from server.commands.options import takes_settings
from server.commands.replay import LIVE, SAMPLES, replay
from server.commands.serve import address, announce, listen, run
from server.commands.terminal import opened
from server.settings import Settings

SPACE = "default"
FOREST = "{forest{nodes{id depth label status head}}}"
SUBSCRIPTION = "subscription{spaceEvents{sessionId seq type ...on AssistantChunk{delta}}}"


@takes_settings("host", "port", "database_url", "data_dir", "frontend_dir", workers=1)
def demo(settings: Settings) -> None:
    """Start a server, load sample sessions if the space is empty, and replay one live."""
    from server.auth.exposure import check_exposure

    name, guarded = asyncio.run(_prepare(settings))
    listener = listen(settings.host, settings.port)
    check_exposure(settings, guarded)

    def ready() -> None:
        announce(name, listener, settings.host)
        print(_things_to_try(address(listener, settings.host), frontend.is_built(settings.frontend_dir)), flush=True)

    run(settings, listener, ready, beside=lambda: replay(settings, SPACE))


async def _prepare(settings: Settings) -> tuple[str, bool]:
    """Loads the samples if the space is empty. Returns the store's name and whether callers need a credential."""
    from server.auth.exposure import requires_credentials
    from storage.session import SessionFilter
    from storage.transfer.formats import registry
    from storage.transfer.importing import import_reading

    async with opened(settings) as store:
        if await store.sessions.count(SPACE, SessionFilter()) == 0:
            for sample in sorted(set(SAMPLES.glob("*.jsonl")) - {LIVE}):
                await import_reading(store, SPACE, registry.read_document(sample.name, sample.read_text("utf-8")))
        return store.database.name, await requires_credentials(store.database, settings)


def _things_to_try(base: str, with_page: bool) -> str:
    page = "/" if with_page else f"/graphql?query={quote(FOREST)}"
    socket = base.replace("http", "ws", 1)
    return f'''
Three things to try, each in its own terminal. Ctrl-C ends the demo.

1. Ask for the forest:

curl -s {base}/graphql -H 'content-type: application/json' \\
  -d '{{"query": "{FOREST}"}}'

2. Watch all events as they are appended:

{sys.executable} -c '
from websockets.sync.client import connect
with connect("{socket}/graphql", subprotocols=["graphql-transport-ws"]) as socket:
    socket.send("""{{"type": "connection_init"}}""")
    socket.send("""{{"type": "subscribe", "id": "1", "payload": {{"query": "{SUBSCRIPTION}"}}}}""")
    for message in socket: print(message)'

3. Open in a browser:

{base}{page}
'''
