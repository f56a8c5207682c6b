"""What joint training did: both errors over the epochs, and atoms before and after, read from the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ddlcn.report.results import Grid


@dataclass(frozen=True)
class JointLine:
    """The joint runs of one cell.

    Attributes
    ----------
    label : str
    classification, reconstruction : tuple of float
        Both errors by epoch, in the mean over the runs that trained longest, as shares of the first epoch's.
    layers : tuple of (before, after) atoms
        Of the first of those runs, dictionary by dictionary.
    n_trained, n_runs : int
        Of how many runs folds said yes.
    """

    label: str
    classification: tuple[float, ...]
    reconstruction: tuple[float, ...]
    layers: tuple[tuple[list[list[float]], list[list[float]]], ...]
    n_trained: int
    n_runs: int

    @property
    def sentence(self) -> str:
        """In words."""
        done = f"{self.label}: {self.n_trained} of {self.n_runs} runs were trained jointly"
        if not self.n_trained:
            return f"{done}; in the others held-out training images were not clearly in favour."
        return (
            f"{done}; from the first epoch to the last the classification error fell to "
            f"{100 * self.classification[-1]:.0f} %, and the reconstruction error went to "
            f"{100 * self.reconstruction[-1]:.0f} % of what it was."
        )


def read_joint(grid: Grid) -> list[JointLine]:
    """A line for every cell of an experiment that was run with joint training."""
    lines = []
    for result in grid.results:
        if not result.cell.settings.is_joint or not result.rows:
            continue
        trained = [row for row in result.rows if row.epochs]
        longest = max((len(row.epochs) for row in trained), default=0)
        shown = [row for row in trained if len(row.epochs) == longest]
        shares = [np.array(row.epochs) / np.maximum(row.epochs[0], 1e-300) for row in shown]
        means = np.mean(shares, axis=0) if shares else np.empty((0, 2))
        layers = tuple((before, after) for before, after in shown[0].atoms) if shown else ()
        label = f"{result.cell.row}, {result.cell.column}"
        curves = (tuple(means[:, 0].tolist()), tuple(means[:, 1].tolist()))
        lines.append(JointLine(label, *curves, layers, len(trained), len(result.rows)))
    return lines
