"""What processes that hold large texts for a moment ask of the allocator."""

import contextlib
import ctypes

LARGE_BYTES = 4 * 1024 * 1024
"""Blocks that are given back as soon as they are free."""
_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's malloc.h. Unless it is set, it grows with the blocks that are freed, up to 32 MiB."""


def give_memory_back() -> None:
    """Has glibc give large blocks back to the system at once, so that two processes need not hold what one has freed.

    Other allocators do as they do.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
