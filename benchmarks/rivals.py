"""The peers, each of which may be missing: its rows then say so, and the run goes on.

Imported before the number of BLAS threads is limited, for the limit only reaches libraries that are loaded.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def load(name: str) -> ModuleType | None:
    """The module, or None where it is not installed (or cannot be loaded on this machine)."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


spams = load("spams")
cv2 = load("cv2")
