"""Adam with cosine decay, for parameters of different sizes (Kingma and Ba 2015)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# The usual ones.
DECAY_MEAN, DECAY_SQUARE, TINY = 0.9, 0.999, 1e-12
# Numbers per task of a thread: what is in between stays in the processor's cache.
NUMBERS_PER_TASK = 1 << 14


class _Piece(NamedTuple):
    """Some of the numbers of one array, as views (n,)."""

    parameter: Array
    gradient: Array
    mean: Array
    square: Array
    rate: float


class Adam:
    """Steps for a list of arrays, which are changed in place.

    Parameters
    ----------
    parameters : sequence of contiguous ndarrays
    rate : float
        Length of a step, as a share of the root mean square of each array at the start.
    n_steps : int
        The rate falls to zero over this many, along half a cosine.
    """

    def __init__(self, parameters: Sequence[Array], rate: float, n_steps: int) -> None:
        self.parameters, self._n_steps = list(parameters), n_steps
        self._rates = [rate * float(np.sqrt(np.mean(np.square(each)))) for each in parameters]
        self.means = [np.zeros_like(each) for each in parameters]
        self.squares = [np.zeros_like(each) for each in parameters]
        self.step = 0

    @property
    def state(self) -> list[Array]:
        """All arrays that change: parameters, and what is known of their gradients."""
        return [*self.parameters, *self.means, *self.squares]

    def update(self, gradients: Sequence[Array], n_jobs: int | None = None) -> None:
        """One step against the gradients; the result does not depend on the number of threads."""
        self.step += 1
        decay = 0.5 * (1.0 + np.cos(np.pi * (self.step - 1) / self._n_steps))
        unbias_mean, unbias_square = 1.0 - DECAY_MEAN**self.step, 1.0 - DECAY_SQUARE**self.step

        def move(own: _Piece) -> None:
            own.mean[...] += (1.0 - DECAY_MEAN) * (own.gradient - own.mean)
            own.square[...] += (1.0 - DECAY_SQUARE) * (own.gradient * own.gradient - own.square)
            length = decay * own.rate / unbias_mean * own.mean
            own.parameter[...] -= length / (np.sqrt(own.square / unbias_square) + TINY)

        for _ in map_threads(move, self._cut(gradients), n_jobs):
            pass

    def _cut(self, gradients: Sequence[Array]) -> Iterator[_Piece]:
        together = zip(self.parameters, gradients, self.means, self.squares, strict=True)
        for arrays, rate in zip(together, self._rates, strict=True):
            parameter, gradient, mean, square = (each.reshape(-1) for each in arrays)
            for start in range(0, len(parameter), NUMBERS_PER_TASK):
                some = slice(start, start + NUMBERS_PER_TASK)
                yield _Piece(parameter[some], gradient[some], mean[some], square[some], rate)
