"""Random operations by the ten thousand on a server of its own: their outcomes, and the server's memory."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.server.process import Server
from tests.server.test_random_operations import run

OPERATIONS = 20_000


async def main(count: int) -> None:
    """Runs them and prints the outcomes, the server's MiB after each tenth, and the duration in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", Path(folder) / "log")
        server.start()
        began = time.perf_counter()
        try:
            outcomes, sizes = await run(server, count, parts=10)
        finally:
            server.end()
            print(server.output)
        assert "Traceback" not in server.output
        print(f"{count:,} operations in {time.perf_counter() - began:.0f} s: {dict(outcomes.most_common())}")
        print(f"MiB after each tenth: {[size // 2**20 for size in sizes]}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else OPERATIONS))
