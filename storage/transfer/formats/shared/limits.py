"""Limits of reading documents."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Size limit of a record; a longer one is broken."""
