"""ChatGPT's exports (conversations.json): conversations whose messages are a tree, `mapping`, of nodes by id."""

from storage.transfer.formats.chatgpt.format import FORMAT, fits, reader

__all__ = ["FORMAT", "fits", "reader"]
