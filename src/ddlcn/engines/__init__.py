"""The few hot kernels, once per device, with the same names and signatures. The rooms ask here for the one to use."""

from __future__ import annotations

from types import ModuleType

from ddlcn._validation import check_choice


def get_engine(name: str = "auto") -> ModuleType:
    """The kernels for a device: "cpu", or "auto" for the best that is there.

    Imported on demand, since the compiler behind them is heavy.
    """
    check_choice("engine", name, ("auto", "cpu"))
    from ddlcn.engines import cpu

    return cpu
