"""Properties of every real log, whatever its format."""

import pytest

from storage.views.surface import Surface
from tests.storage.transfer.formats.logs import DATA, document, records_of, steps_of, visible_logs
from tests.storage.views import validity

LOGS = sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj"))


@pytest.mark.parametrize("name", LOGS)
def test_the_surface_of_every_session_is_valid_at_every_cut(name: str) -> None:
    steps, _ = steps_of(records_of(*document(name)))
    logs = visible_logs(steps)
    assert any(logs.values())
    for log in logs.values():
        surface = Surface()
        for event in log:
            surface.check_replace(event)
            validity.check(surface.add(event))
