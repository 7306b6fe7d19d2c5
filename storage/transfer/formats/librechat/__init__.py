"""LibreChat's exports: `{conversationId, title, options, messages}`, the messages a tree, recursive or flat."""

from storage.transfer.formats.librechat.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
