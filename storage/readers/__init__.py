"""Readers: views of stored sessions, computed from as little of the log as possible."""
