"""Comparing histograms: sums over the bins of what two of them share, by one kernel.

intersection    sum_j min(a_j, b_j)             with the level weights of a pyramid: the pyramid match kernel
chi-square      sum_j (a_j - b_j)^2 / (a_j + b_j)  =  sum_j a_j + sum_j b_j - 4 sum_j a_j b_j / (a_j + b_j)

In: sparse rows a, and training histograms b bin by bin, so that the loop over them is contiguous. Terms of a bin that
is empty in a are zero and cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import kernel

Array = NDArray[Any]

# Bins processed at a time: with 2,000 training images of 4 bytes they are half a megabyte, and stay in the cache.
N_BINS = 64


def intersect(features: Any, bins: Array) -> Array:
    """Histogram intersections (n, n_train).

    Parameters
    ----------
    features : csr_array (n, columns), columns ascending in every row, none negative
    bins : ndarray (columns, n_train)
    """
    shared = np.zeros((features.shape[0], bins.shape[1]))
    sum_shared(features.indptr, features.indices, features.data, bins, N_BINS, True, shared)
    return shared


def measure_chi2(features: Any, bins: Array, n_bins: int) -> Array:
    """Chi-square distances (n, n_train) of histograms that all have the same sum.

    Parameters
    ----------
    features : csr_array (n, columns), columns ascending in every row
    bins : ndarray (columns, n_train) of whole numbers
    n_bins : int
        Bins processed at a time, for all rows: small enough to stay in the processor's cache.
    """
    shared = np.zeros((features.shape[0], bins.shape[1]))
    sum_shared(features.indptr, features.indices, features.data, bins, n_bins, False, shared)
    # (a - b)^2 / (a + b) = a + b - 4 ab / (a + b), of which the last is nonzero only where both are.
    return np.asarray(2.0 * features.data[features.indptr[0] : features.indptr[1]].sum() - 4.0 * shared)


@kernel
def sum_shared(
    starts: Array, columns: Array, values: Array, bins: Array, n_bins: int, minima: bool, out: Array
) -> None:
    """out (n, n_train) += sum over columns of min(a, b), or of ab / (a + b).

    a are csr rows (n, columns), b are `bins` (columns, n_train). The terms of `n_bins` bins are summed in float32,
    exact to 1e-7; the total is float64.
    """
    n_train = bins.shape[1]
    at = starts[:-1].copy()  # position in each row
    part = np.empty(n_train, np.float32)
    for first in range(0, len(bins), n_bins):
        for i in range(len(out)):
            part[:] = 0
            while at[i] < starts[i + 1] and columns[at[i]] < first + n_bins:
                a, column = np.float32(values[at[i]]), bins[columns[at[i]]]
                if minima:
                    for t in range(n_train):
                        part[t] += min(a, np.float32(column[t]))
                else:
                    for t in range(n_train):
                        b = np.float32(column[t])
                        part[t] += a * b / (a + b)
                at[i] += 1
            for t in range(n_train):
                out[i, t] += part[t]
