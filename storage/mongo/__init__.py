"""The store for many servers: the documents in MongoDB, through Motor. The only package that imports the driver."""

import os

# Motor runs each operation on a thread; while the database is away, each of them is taken for seconds.
os.environ.setdefault("MOTOR_MAX_WORKERS", "64")
