"""The server as a process of its own, over the real wire."""
