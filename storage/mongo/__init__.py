"""The store for many servers: documents in MongoDB, through Motor. The only package that imports the driver."""

import os

# Motor runs each operation on a thread. While the database is unreachable, each one blocks its thread for seconds.
os.environ.setdefault("MOTOR_MAX_WORKERS", "64")
