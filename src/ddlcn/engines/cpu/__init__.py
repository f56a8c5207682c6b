"""The kernels for processors, compiled by numba on first use."""

from ddlcn.engines.cpu.everywhere import N_GROW, code_all
from ddlcn.engines.cpu.locality import code_nearest, measure_distances, pack_codes
from ddlcn.engines.cpu.nearest import count_lanes
from ddlcn.engines.cpu.pooling import pool_codes
from ddlcn.engines.cpu.residual import append_codes, reduce_residuals, take_residuals
from ddlcn.engines.cpu.tangents import sum_tangents

__all__ = [
    "N_GROW",
    "append_codes",
    "code_all",
    "code_nearest",
    "count_lanes",
    "measure_distances",
    "pack_codes",
    "pool_codes",
    "reduce_residuals",
    "sum_tangents",
    "take_residuals",
]
