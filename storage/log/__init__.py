"""The log of a session: appending to it, reading it, and the state it is in."""
