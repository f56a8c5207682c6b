"""The hot kernels; `get_engine` returns them."""

from __future__ import annotations

from types import ModuleType


def get_engine() -> ModuleType:
    """The kernels of this machine's CPU. Imported on demand, since numba is slow to import."""
    from ddlcn.engines import cpu

    return cpu
