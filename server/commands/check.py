"""`sapwood check`: finding and repairing damage in a store."""

import asyncio
import dataclasses
from typing import Annotated

import typer

from server.commands.options import Json, takes_settings
from server.commands.terminal import opened, print_json, progress
from server.settings import Settings
from storage.check.problem import Problem


@takes_settings("database_url", "data_dir")
def check(
    settings: Settings,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without guessing.")] = False,
    as_json: Json = False,
) -> None:
    """Look for damage in all spaces. A server may keep running meanwhile.

    The exit code is 1 if problems remain.
    """
    if not asyncio.run(_check(settings, repair, as_json)):
        raise typer.Exit(1)


async def _check(settings: Settings, repair: bool, as_json: bool) -> bool:
    """Prints the problems. Returns whether none remains."""
    from storage.check.store import check_store, count_sessions

    problems: list[Problem] = []
    async with opened(settings, existing=True) as store:
        sessions = await count_sessions(store.database)
        with progress("Checking sessions", sessions) as advance:
            async for problem in check_store(store.database, repair=repair, progress=advance):
                problems.append(problem)
                if not as_json:
                    print(problem, flush=True)
        name = store.database.name
    left = sum(not problem.repaired for problem in problems)
    if as_json:
        found = [dataclasses.asdict(problem) for problem in problems]
        print_json({"store": name, "sessions": sessions, "problems": found, "left": left})
    else:
        outcome = f"{len(problems)} problems, {left} left" if problems else "no problems"
        print(f"{sessions} sessions in {name}: {outcome}")
    return left == 0
