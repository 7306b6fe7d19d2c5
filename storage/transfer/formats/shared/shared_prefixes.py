"""Finds the earlier conversation that begins with the same messages, and how many they share."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from storage.session import MAX_SEGMENTS

MAX_PREFIXES = 100_000
"""Prefixes that are remembered; the least recently used are dropped first."""
MAX_DEPTH = MAX_SEGMENTS // 2
"""Limit for forks of forks; leaves room for forks made later."""


class Shared(NamedTuple):
    """The session in which a prefix was first seen, its head after the prefix, and how many forks it builds on."""

    key: str
    at_seq: int
    depth: int


class SharedPrefixes:
    """The prefixes of the conversations added so far, each with the first session that has it."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Shared] = OrderedDict()

    def add(self, key: str, group: str, messages: Iterable[tuple[object, int]]) -> Shared | None:
        """Add a conversation. Return the longest prefix that it shares with an earlier one of the group, if any.

        `messages` are the decoded messages of the session `key`, each with the session's head after it. Equal messages
        after equal prefixes must have been logged as equal events.
        """
        digest = hashlib.blake2b(_encoded(group), digest_size=16)
        prefixes = []
        shared = None
        for message, head in messages:
            digest.update(b"\n" + _encoded(message))
            prefix = digest.digest()
            prefixes.append((prefix, head))
            if known := self._known.get(prefix):
                shared = known
                self._known.move_to_end(prefix)
        if shared is not None and shared.depth >= MAX_DEPTH:
            shared = None
        depth = 0 if shared is None else shared.depth + 1
        for prefix, head in prefixes:
            if shared is None or head > shared.at_seq:
                self._known[prefix] = Shared(key, head, depth)
        while len(self._known) > MAX_PREFIXES:
            self._known.popitem(last=False)
        return shared


def _encoded(value: object) -> bytes:
    """Any decoded JSON as bytes, even what no event can store."""
    return json.dumps(value, separators=(",", ":")).encode()
