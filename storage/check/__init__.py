"""Checking a store against its promises, and repairing it."""
