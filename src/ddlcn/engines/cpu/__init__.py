"""The kernels for processors, compiled by numba on first use."""

from ddlcn.engines.cpu.locality import N_GROW, code_all, code_nearest

__all__ = ["N_GROW", "code_all", "code_nearest"]
