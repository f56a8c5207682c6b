"""The kernels for processors, compiled by numba on first use."""

from ddlcn.engines.cpu.locality import N_GROW, code_all, code_nearest
from ddlcn.engines.cpu.pooling import pool_codes

__all__ = ["N_GROW", "code_all", "code_nearest", "pool_codes"]
