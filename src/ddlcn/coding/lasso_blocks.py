"""The start of a lasso code with many nonzeros: exchange many atoms at a time (block principal pivoting).

For a guess of the signs s of the code, zero off the support S, the code is z_S = G_SS^-1 (h_S - alpha s_S). Atoms whose
code came out with the wrong sign leave, those off the support that violate |h - G z| <= alpha enter, all at once; the
guess is right when there are none (Kim and Park 2010, there for nonnegative least squares). It may not converge, so it
stops when it no longer improves, and `lasso` turns the result into a certified code. A handful of LAPACK solves
replaces several hundred steps of one atom each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Array = NDArray[Any]

# Exchanges at most, and how many may pass without fewer wrong atoms: it usually ends in 5 to 12.
MAX_EXCHANGES, PATIENCE = 40, 4
# Violations below this part of alpha are rounding.
SLACK = 1e-9


def exchange_blocks(gram: Array, h: Array, z: Array, width: int, alpha: float) -> Array:
    """Return a code (atoms,) whose nonzeros have consistent signs: the optimum, or near it.

    Parameters
    ----------
    gram : ndarray (atoms, atoms); h : ndarray (atoms,)
        Inner products of the atoms with each other and with the descriptor.
    z : ndarray (atoms,)
        The code to start from.
    width : int
        Most nonzeros of a code.
    alpha : float
    """
    signs, best, fewest, left = np.sign(z), z, len(h) + 1, PATIENCE
    for _ in range(MAX_EXCHANGES):
        support = np.flatnonzero(signs)
        if len(support) > width:
            break
        rows = gram[support]  # (k, atoms)
        try:
            factor = cho_factor(rows[:, support], lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # the atoms are linearly dependent
            break
        values = cho_solve(factor, h[support] - alpha * signs[support], check_finite=False)
        c = h - values @ rows
        c[support] = 0.0
        wrong = support[values * signs[support] <= 0.0]
        enter = np.flatnonzero(np.abs(c) > alpha * (1.0 + SLACK))
        n_wrong = len(wrong) + len(enter)
        if n_wrong < fewest:
            fewest, left = n_wrong, PATIENCE
            best = np.zeros_like(h)
            best[support] = np.where(values * signs[support] > 0.0, values, 0.0)
        else:
            left -= 1
        if n_wrong == 0 or left == 0:
            break
        signs[wrong] = 0.0
        signs[enter] = np.sign(c[enter])
    return best
