"""Allocator settings for processes that hold large texts for a short time."""

import contextlib
import ctypes

LARGE_BYTES = 4 * 1024 * 1024
"""Blocks of this size are returned to the system as soon as they are freed."""
_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's malloc.h. Unless set, it grows with the blocks that are freed, up to 32 MiB."""


def return_large_blocks() -> None:
    """Makes glibc return large blocks to the system at once, so that neither of two processes holds what it has freed.

    Has no effect on other allocators.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
