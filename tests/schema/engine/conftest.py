"""Fixtures for tests of the executor."""

import pytest

from schema.engine import execution


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use compiled readers wherever possible, even where they save no time."""
    monkeypatch.setattr(execution, "MIN_ITEMS", 1)
    monkeypatch.setattr(execution, "MIN_FIELDS", 1)
