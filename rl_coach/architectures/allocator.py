"""Settings of the C library's memory allocation while JAX learns."""

from __future__ import annotations

import ctypes
import os

_VARIABLES = ("GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
# the numbers of glibc's malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> None:
    """Make glibc keep freed memory in the process. Call this function before JAX starts threads. It has no effect
    without glibc, or if the user has set variables for the allocation of memory.

    XLA allocates the temporary arrays of an update in one piece and frees them after the update. The default of glibc
    returns a piece of more than 32 MB to the system. The next update then gets new pages, and the system fills each
    page with zeros. An update of DreamerV3 with 290 MB takes 0.62 s without kept memory, and 0.50 s with it (one core
    with AVX-512).
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is None or any(name in os.environ for name in _VARIABLES):
        return
    set_option(_M_ARENA_MAX, 1)  # a thread with a separate arena would get a large piece from the system
    set_option(_M_MMAP_MAX, 0)
    set_option(_M_TRIM_THRESHOLD, 2**31 - 1)
