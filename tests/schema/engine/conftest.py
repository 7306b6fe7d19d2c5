"""Readers wherever they can be."""

import pytest

from schema.engine import execution


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has readers used wherever they can be, also where they save no time."""
    monkeypatch.setattr(execution, "MIN_ITEMS", 1)
    monkeypatch.setattr(execution, "MIN_FIELDS", 1)
