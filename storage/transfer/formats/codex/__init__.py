"""Rollouts of the Codex CLI: `{timestamp, type, payload}` a line, in old ones a header and then bare items."""

from storage.transfer.formats.codex.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
