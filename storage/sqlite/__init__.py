"""The embedded store: the same documents in an SQLite file. The only package that imports sqlite3."""
