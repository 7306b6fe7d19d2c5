"""How many database queries one operation on many sessions makes."""

import asyncio

from schema.build import build_schema
from schema.context import Context
from storage.lifecycle import NewSession
from tests.bench.backends import Backend
from tests.bench.table import Row, report
from tests.counting import counted

SPACE = "counted"
QUERY = "query($ids:[ID!]!){sessions(ids:$ids){id node{id refs referencedBy} digest{id memory{content}}}}"


async def measure(backend: Backend) -> None:
    """Reports the row of one store."""
    async with backend.opened() as store:
        ids = [f"counted-{number}" for number in range(1_000)]
        for start in range(0, len(ids), 100):
            await asyncio.gather(*(store.tree.create(SPACE, NewSession(id=id)) for id in ids[start : start + 100]))
        schema = build_schema()
        found = []
        for size in (1, 100, 1_000):
            async with counted(store) as count:
                result = await schema.execute(QUERY, {"ids": ids[:size]}, context_value=Context(store, SPACE))
            assert result.errors is None
            found.append(count.queries)
    what = f"[{backend.kind}] database queries for node, digest and refs of 1,000 sessions against 1"
    report(Row(what, found[2] / found[0], 1, False, f"{found[0]}, {found[1]}, {found[2]} for 1, 100, 1,000"))
