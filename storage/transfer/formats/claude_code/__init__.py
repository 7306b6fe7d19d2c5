"""Logs of Claude Code, one JSON record per line, linked into a tree by `uuid` and `parentUuid`."""

from storage.transfer.formats.claude_code.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
