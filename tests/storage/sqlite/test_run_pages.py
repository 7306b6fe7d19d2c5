"""Every page of runs walks an index, whatever it is filtered by."""

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from storage.events import RunStatus
from storage.run_filter import RunFilter
from storage.sqlite import run_page, schema

GIVEN: dict[str, Any] = {
    "session_id": "a",
    "status": RunStatus.FAILED,
    "agent_flow": "CHAT",
    "agent_name": "plan",
    "tool_name": "search",
    "feedback": "good",
    "min_duration_ms": 5.0,
    "started_after": 1,
    "started_before": 9,
}


def test_no_page_sorts_or_scans_a_space(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as connection:
        schema.prepare(connection, "file")
        for count in range(len(GIVEN) + 1):
            for names in itertools.combinations(GIVEN, count):
                selection = RunFilter(**{name: GIVEN[name] for name in names})
                for after in (None, (5, "0000000001/a")):
                    sql, values = run_page.page("space", selection, after, 10)
                    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
                    assert not [step for step in plan if "SCAN" in step or "TEMP" in step], (selection, plan)
                    assert "(space=?" in plan[0], plan
                    if after or {"started_after", "started_before"} & set(names):
                        assert "started_at" in plan[0], (selection, plan)
