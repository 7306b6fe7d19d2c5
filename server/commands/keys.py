"""`sapwood keys`: creating, listing and revoking API keys."""

import asyncio
import re
import sys
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from server.commands.options import Json, Space, check_space, takes_settings
from server.commands.terminal import opened, print_json
from server.settings import Settings
from storage import access_key, access_keys, text
from storage.access_key import AccessKey, AccessRole
from storage.log.append import now

UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION = re.compile(r"([1-9][0-9]{0,5})([smhd])\Z")

app = typer.Typer(help="Manage API keys, which say who may do what in which space.", no_args_is_help=True)


def _duration(value: str | None) -> str | None:
    if value is not None and not DURATION.match(value):
        raise typer.BadParameter(f"{value!r} is not a duration: write for example 90d, 12h, 30m or 20s")
    return value


@app.command("create")
@takes_settings("database_url", "data_dir")
def create(
    settings: Settings,
    role: Annotated[AccessRole, typer.Option(case_sensitive=False, help="What the key may do.")],
    name: Annotated[str | None, typer.Option(help="What the key is for, as shown in lists.")] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(callback=_duration, metavar="TIME", help="For example 90d, 12h, 30m or 20s. By default never."),
    ] = None,
    as_json: Json = False,
    space: Space = "default",
) -> None:
    """Create a key and show it this once. The first key ends open access for good."""
    created = asyncio.run(_create(settings, space, role, name, expires_in))
    if as_json:
        print_json({"key": created.text, **_row(created.key)})
        return
    print(created.text, flush=True)
    print("Save it now: it is not stored and can't be shown again.", file=sys.stderr, flush=True)


async def _create(
    settings: Settings, space: str, role: AccessRole, name: str | None, expires_in: str | None
) -> access_keys.CreatedKey:
    expires_at = None
    if expires_in is not None and (found := DURATION.match(expires_in)):
        expires_at = now() + int(found[1]) * UNIT_MS[found[2]]
    async with opened(settings) as store:
        return await access_keys.create(store.database, space, role, name, expires_at)


@app.command("list")
@takes_settings("database_url", "data_dir")
def list_keys(
    settings: Settings,
    as_json: Json = False,
    space: Annotated[str | None, typer.Option(callback=check_space, help="The space. By default all of them.")] = None,
) -> None:
    """List the keys, without their secrets."""
    found = asyncio.run(_list(settings, space))
    if as_json:
        print_json([_row(key) for key in found])
        return
    table = Table(box=box.SIMPLE)
    for title in ("id", "space", "role", "state", "expires", "last used", "name"):
        table.add_column(title, overflow="fold", no_wrap=title == "id")
    for key in found:
        row = _row(key)
        times = [(row[cell] or "never")[:10] for cell in ("expiresAt", "lastUsedAt")]
        table.add_row(row["id"], row["space"], row["role"], row["state"], *times, row["name"])
    Console().print(table if found else "no keys", markup=False, highlight=False)


async def _list(settings: Settings, space: str | None) -> list[AccessKey]:
    async with opened(settings, existing=True) as store:
        return await access_keys.list_all(store.database, space)


@app.command("revoke")
@takes_settings("database_url", "data_dir")
def revoke(
    settings: Settings,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The id of the key, or the whole key.")],
    as_json: Json = False,
) -> None:
    """Revoke a key for good. Running servers refuse it and close its sockets within five seconds."""
    parts = access_key.split(key)
    revoked = asyncio.run(_revoke(settings, key if parts is None else parts[0]))
    if as_json:
        print_json(_row(revoked))
    else:
        print(f"{revoked.id} is revoked")


async def _revoke(settings: Settings, id: str) -> AccessKey:
    async with opened(settings, existing=True) as store:
        return await access_keys.revoke(store.database, id)


def _row(key: AccessKey) -> dict[str, Any]:
    """The fields of a key that are shown."""

    def instant(value: int | None) -> str | None:
        return None if value is None else text.format_instant(value)

    state = "revoked" if key.revoked_at is not None else "active" if key.holds_at(now()) else "expired"
    return {
        "id": key.id,
        "space": key.space,
        "role": key.role.lower(),
        "name": key.name,
        "createdAt": instant(key.created_at),
        "expiresAt": instant(key.expires_at),
        "lastUsedAt": instant(key.last_used_at),
        "revokedAt": instant(key.revoked_at),
        "state": state,
    }
