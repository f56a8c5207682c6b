"""How much memory the machine has. It bounds what is kept for speed; no result depends on it."""

from __future__ import annotations

import os


def count_memory() -> int:
    """Bytes of memory of this machine; 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
