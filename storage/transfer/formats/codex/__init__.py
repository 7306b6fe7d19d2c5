"""Rollouts of the Codex CLI: `{timestamp, type, payload}` per line; old ones have a header and then bare items."""

from storage.transfer.formats.codex.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
