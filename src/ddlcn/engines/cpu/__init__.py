"""The CPU kernels, compiled by numba on first use."""

from ddlcn.engines.cpu.code_gradient import backpropagate_codes
from ddlcn.engines.cpu.columns import fill_columns, spread_decisions
from ddlcn.engines.cpu.first_order import finish_first_order, scale_to_unit_norm, spread_first_order, sum_first_order
from ddlcn.engines.cpu.full_dictionary import N_EXPAND, code_all
from ddlcn.engines.cpu.locality import code_nearest, measure_distances, pack_codes
from ddlcn.engines.cpu.nearest import count_lanes
from ddlcn.engines.cpu.pooling import pool_codes
from ddlcn.engines.cpu.residual import append_codes, compute_residuals, project_residuals, reduce_residuals

__all__ = [
    "N_EXPAND",
    "append_codes",
    "backpropagate_codes",
    "code_all",
    "code_nearest",
    "compute_residuals",
    "count_lanes",
    "fill_columns",
    "finish_first_order",
    "measure_distances",
    "pack_codes",
    "pool_codes",
    "project_residuals",
    "reduce_residuals",
    "scale_to_unit_norm",
    "spread_decisions",
    "spread_first_order",
    "sum_first_order",
]
