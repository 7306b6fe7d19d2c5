"""Sessions in and out: import of foreign logs, and export."""
