"""The embedded store: documents in an SQLite file. The only package that imports sqlite3."""
