"""A parsing process for tests."""

from collections.abc import Iterator

import pytest

from storage.transfer.parsing.parser import Parser


@pytest.fixture
def parser() -> Iterator[Parser]:
    """A spawned process, since forking is not safe from pytest, which has threads. The command forks where it can."""
    with Parser("spawn") as parser:
        yield parser
