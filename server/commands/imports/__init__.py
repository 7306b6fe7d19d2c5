"""`sapwood import`: which files to read, importing or following them, and the report."""
