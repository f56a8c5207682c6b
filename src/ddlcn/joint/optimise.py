"""Adam with cosine decay, for parameters of different sizes (Kingma and Ba 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The usual ones.
DECAY_MEAN, DECAY_SQUARE, TINY = 0.9, 0.999, 1e-12


class Adam:
    """Steps for a list of arrays, which are changed in place.

    Parameters
    ----------
    parameters : sequence of ndarrays
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

    def update(self, gradients: Sequence[Array]) -> None:
        """One step against the gradients."""
        self.step += 1
        decay = 0.5 * (1.0 + np.cos(np.pi * (self.step - 1) / self._n_steps))
        unbias_mean, unbias_square = 1.0 - DECAY_MEAN**self.step, 1.0 - DECAY_SQUARE**self.step
        together = zip(self.parameters, gradients, self.means, self.squares, self._rates, strict=True)
        for parameter, gradient, mean, square, rate in together:
            mean += (1.0 - DECAY_MEAN) * (gradient - mean)
            square += (1.0 - DECAY_SQUARE) * (gradient * gradient - square)
            parameter -= decay * rate / unbias_mean * mean / (np.sqrt(square / unbias_square) + TINY)
