"""The hot kernels, once per device, with the same names and signatures; `get_engine` returns a device's."""

from __future__ import annotations

from types import ModuleType

from ddlcn.utils.validation import check_choice


def get_engine(name: str = "auto") -> ModuleType:
    """Return the kernels for a device: "cpu", or "auto" for the best available.

    Imported on demand, since numba is slow to import.
    """
    check_choice("engine", name, ("auto", "cpu"))
    from ddlcn.engines import cpu

    return cpu
