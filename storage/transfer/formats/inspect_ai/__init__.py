"""Logs of Inspect in JSON: the evaluation, and a session for each sample."""

from storage.transfer.formats.inspect_ai.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
