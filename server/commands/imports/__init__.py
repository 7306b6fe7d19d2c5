"""`sapwood import`."""
