"""Lets the system have large arrays back as soon as they are freed."""

import ctypes
from contextlib import suppress

# A parameter of glibc's `mallopt`, and what it is at first.
_M_MMAP_THRESHOLD, _FROM = -3, 128 * 1024


def return_freed_arrays() -> None:
    """Give back every freed array of at least 128 kB.

    glibc raises that size up to 32 MB as arrays are freed. Then what loaded the states of signals stays with the
    process, and new arrays take memory that nobody has written to. Other C libraries have no such parameter.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _FROM)
