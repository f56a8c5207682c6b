"""Atoms and classifier together: mini-batches of images through all layers and back (docs/joint.md).

    min over atoms, w, b   classification error  +  mu * reconstruction errors of all layers      ||atom|| <= 1

In: what was learned layer by layer, and the SVM on it. Out: branches with other atoms, and the SVM trained with them;
nothing else about them changes, so the coder stays exact, and files, predictions and explanations know no difference.
Whoever calls this may solve the SVM once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Branch
from ddlcn.descriptors import describe
from ddlcn.engines import get_engine
from ddlcn.images import NamedImage
from ddlcn.images.variation import BentCopy
from ddlcn.joint.objective import HingeLoss
from ddlcn.joint.optimise import Adam
from ddlcn.joint.passes import BlockGradient, Pass, start_pass
from ddlcn.joint.paths import backpropagate_paths
from ddlcn.joint.progress import NOT_KEPT, KeptState
from ddlcn.svm import LinearSVM
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Images per step, and per task of a thread: fixed, so that sums round the same with any number of threads.
IMAGES_PER_STEP, IMAGES_PER_TASK = 64, 8
# Descriptors of an image whose reconstruction error is looked at, in every step.
DESCRIPTORS_PER_IMAGE = 8


@dataclass(frozen=True)
class JointConfig:
    """How to train.

    Attributes
    ----------
    epochs : int
    mu : float
        Weight of the reconstruction errors: of 1/2 ||x - approximation||^2, summed over layers, mean over descriptors.
    rate : float
        Length of the first steps, as a share of the parameters' own size.
    vary : float
        Images are slightly turned, scaled and bent, anew in every epoch, by this part of what virtual copies are; 0:
        they are as they are.
    """

    epochs: int
    mu: float = 1.0
    rate: float = 0.05
    vary: float = 0.0


class Epoch(NamedTuple):
    """What one epoch measured, in the mean over its steps."""

    number: int
    classification_error: float
    reconstruction_error: float
    seconds: float


class _Column(NamedTuple):
    """A block of the feature, of one batch of images."""

    branch: int
    block: int
    start: int  # its first column
    factor: float  # its columns are multiplied with this
    starts: Array  # (images + 1,): where each image's descriptors begin
    forward: Pass


class JointTraining:
    """Trains branches and an SVM together.

    Parameters
    ----------
    branches : sequence of Branch; weights : sequence of float
        The encoder.
    svm : LinearSVM
        Fitted to its features; one row per class.
    items : sequence of n NamedImages; loss : HingeLoss
        Training images, and what they should be.
    config : JointConfig
    seed : SeedSequence
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """

    def __init__(
        self,
        branches: Sequence[Branch],
        weights: Sequence[float],
        svm: LinearSVM,
        items: Sequence[NamedImage],
        loss: HingeLoss,
        config: JointConfig,
        seed: np.random.SeedSequence,
        n_jobs: int | None = None,
    ) -> None:
        self._branches, self._weights = list(branches), tuple(weights)
        self._items, self._loss, self.config, self._n_jobs = items, loss, config, n_jobs
        self._seed = seed
        self._coef = np.ascontiguousarray(svm.coef.T, np.float64)  # (columns, rows)
        self._intercept, self._n_classes = svm.intercept.astype(np.float64), svm.n_classes
        self._atoms = [_list_atoms(branch) for branch in branches]  # of every branch, of every dictionary
        n_steps = config.epochs * -(-len(items) // IMAGES_PER_STEP)
        flat = [each for own in self._atoms for each in own]
        self._adam = Adam([self._coef, self._intercept, *flat], config.rate, max(1, n_steps))
        self.history: list[Epoch] = []

    def run(self, tell: Callable[[Epoch], None] = lambda _: None, kept: KeptState = NOT_KEPT) -> list[Branch]:
        """All epochs that are left; returns the branches with their new atoms.

        Parameters
        ----------
        tell : function
            Hears of every epoch.
        kept : KeptState
            Where to continue from, and what is written after every epoch.
        """
        self._continue_from(kept.read())
        while len(self.history) < self.config.epochs:
            begin, number = time.perf_counter(), len(self.history)
            rng = np.random.default_rng([*self._seed.generate_state(2).tolist(), number])
            order = rng.permutation(len(self._items))
            measured = [
                self._step(order[start : start + IMAGES_PER_STEP], rng)
                for start in range(0, len(order), IMAGES_PER_STEP)
            ]
            errors = np.mean(measured, axis=0)
            self.history.append(Epoch(number + 1, float(errors[0]), float(errors[1]), time.perf_counter() - begin))
            kept.write([np.array(self.history), *self._adam.state])
            tell(self.history[-1])
        return self.make_branches()

    def list_start(self) -> list[Any]:
        """All that the result depends on but the images: the same list, the same training."""
        return [self.config, self._seed.entropy, self._seed.spawn_key, len(self._items), *self._adam.parameters]

    def _continue_from(self, state: list[Array] | None) -> None:
        """Go to where a state was written."""
        if state is None or [each.shape for each in state[1:]] != [each.shape for each in self._adam.state]:
            return
        self.history = [Epoch(int(row[0]), *row[1:].tolist()) for row in state[0]]
        for own, found in zip(self._adam.state, state[1:], strict=True):
            own[...] = found
        self._adam.step = len(self.history) * -(-len(self._items) // IMAGES_PER_STEP)

    def make_branches(self) -> list[Branch]:
        """The branches with the atoms of this moment."""
        return [_with_atoms(branch, atoms) for branch, atoms in zip(self._branches, self._atoms, strict=True)]

    def make_svm(self) -> LinearSVM:
        """The SVM with the weights of this moment."""
        return LinearSVM(self._coef.T.copy(), self._intercept.copy(), False, self._n_classes)

    def _step(self, chosen: NDArray[np.intp], rng: np.random.Generator) -> tuple[float, float]:
        """One mini-batch; returns its classification and its reconstruction error."""
        gradients, errors = self.measure(chosen, rng)
        self._adam.update(gradients, self._n_jobs)
        for own in self._atoms:
            for atoms in own:
                atoms /= np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1.0)
        return errors

    def measure(self, chosen: NDArray[np.intp], rng: np.random.Generator) -> tuple[list[Array], tuple[float, float]]:
        """Gradients of all parameters on some images: weights, intercepts, then all atoms; and both errors."""
        branches = self.make_branches()
        for branch in branches:
            _ = branch.blocks  # prepared here, not by several threads at once
        seeds = rng.integers(2**63, size=len(chosen))
        tasks = [slice(start, start + IMAGES_PER_TASK) for start in range(0, len(chosen), IMAGES_PER_TASK)]
        items = [self._vary(self._items[i], seed) for i, seed in zip(chosen.tolist(), seeds.tolist(), strict=True)]
        forward = list(map_threads(lambda task: self._forward(branches, items[task]), tasks, self._n_jobs))
        decisions = np.concatenate([self._decide(columns) for columns in forward])
        loss, of_decisions = self._loss.measure(decisions, chosen)
        of_coef = self._loss.penalty * self._coef
        of_intercept = self._loss.penalty * self._intercept + of_decisions.sum(axis=0)
        for task, columns in zip(tasks, forward, strict=True):
            for each in columns:
                n = each.forward.features.shape[1]
                of_coef[each.start : each.start + n] += each.factor * (each.forward.features.T @ of_decisions[task])
        rate = self.config.mu / (len(chosen) * DESCRIPTORS_PER_IMAGE)

        def go_back(each: tuple[slice, list[_Column]]) -> list[BlockGradient | None]:
            task, columns = each
            return [self._backward(column, of_decisions[task], seeds[task], rate) for column in columns]

        sums: list[BlockGradient | None] = []
        for found in map_threads(go_back, zip(tasks, forward, strict=True), self._n_jobs):
            sums = [_add(a, b) for a, b in zip(sums, found, strict=True)] if sums else list(found)
        of_atoms, error = self._collect(forward[0], sums)
        mu = max(self.config.mu, 1e-300)
        return [of_coef, of_intercept, *of_atoms], (loss, error / mu)

    def _forward(self, branches: Sequence[Branch], items: Sequence[NamedImage]) -> list[_Column]:
        columns, start = [], 0
        for b, (branch, branch_weight) in enumerate(zip(branches, self._weights, strict=True)):
            if branch_weight > 0.0:
                batch = branch.collect([describe(branch.descriptors, item) for item in items])
            at = start
            for k, (weight, block) in enumerate(branch.blocks):
                if branch_weight > 0.0:
                    forward = start_pass(branch, block, batch)
                    factor = float(np.sqrt(branch_weight * weight))
                    columns.append(_Column(b, k, at, factor, batch.starts, forward))
                at += block.n_columns
            start = at
        return columns

    def _decide(self, columns: Sequence[_Column]) -> Array:
        """Decision values (images, rows)."""
        decisions = np.tile(self._intercept, (columns[0].forward.features.shape[0], 1))
        for each in columns:
            features = each.forward.features
            decisions += each.factor * (features @ self._coef[each.start : each.start + features.shape[1]])
        return decisions

    def _backward(self, column: _Column, of_decisions: Array, seeds: Array, rate: float) -> BlockGradient | None:
        features = column.forward.features
        coef = self._coef[column.start : column.start + features.shape[1]]
        grad = np.empty(features.nnz)
        where = (features.indices, features.indptr)
        get_engine().spread_decisions(of_decisions, coef, *where, column.factor, grad)
        return column.forward.backward(grad, _draw_rates(column.starts, seeds, rate))

    def _collect(self, columns: Sequence[_Column], sums: Sequence[BlockGradient | None]) -> tuple[list[Array], float]:
        """Gradients of all atoms, branch by branch, dictionary by dictionary, and the weighted errors."""
        grads = [[np.zeros(each.shape) for each in own] for own in self._atoms]
        error = 0.0
        for column, found in zip(columns, sums, strict=True):
            if found is None:
                continue
            branch, own = self._branches[column.branch], grads[column.branch]
            error += found.error
            if column.block > 0:  # first order, the last dictionary
                own[-1] += found.atoms
                continue
            n_layers = len(branch.dictionaries)
            starts = np.cumsum([0] + [len(each) for each in branch.dictionaries])
            for layer in range(n_layers if branch.config.depth == "residual" else 1):
                own[layer] += found.atoms[starts[layer] : starts[layer + 1]]
            if branch.config.depth == "augment" and n_layers > 1:
                atoms = self._atoms[column.branch][:n_layers]
                deeper, own_error = backpropagate_paths(atoms, branch.config, found.plus, found.minus, self.config.mu)
                error += own_error
                for layer, each in enumerate(deeper):
                    own[layer] += each
        return [each for own in grads for each in own], error

    def _vary(self, item: NamedImage, seed: int) -> NamedImage:
        if self.config.vary == 0.0:
            return item
        copy = BentCopy(item.image, np.random.SeedSequence(seed), self.config.vary)
        return NamedImage(item.name, copy)


def _list_atoms(branch: Branch) -> list[Array]:
    """Copies, in float64, of the dictionaries of all layers and of first order."""
    first_order = [] if branch.first_order is None else [branch.first_order.atoms]
    return [np.array(each, np.float64) for each in (*branch.dictionaries, *first_order)]


def _with_atoms(branch: Branch, atoms: Sequence[Array]) -> Branch:
    """The branch with other atoms, of its own dtype."""
    dtype = branch.dictionaries[0].dtype
    cast = [np.ascontiguousarray(each, dtype) for each in atoms]
    first_order = branch.first_order
    if first_order is not None:
        first_order = replace(first_order, atoms=cast[-1])
    return replace(branch, dictionaries=cast[: len(branch.dictionaries)], first_order=first_order, _blocks=[])


def _draw_rates(starts: Array, seeds: Array, rate: float) -> Array:
    """Weights (n,) of the reconstruction errors: of a few descriptors of every image."""
    rates = np.zeros(starts[-1])
    for begin, end, seed in zip(starts[:-1], starts[1:], seeds, strict=True):
        if end > begin:
            drawn = np.random.default_rng(int(seed)).integers(begin, end, DESCRIPTORS_PER_IMAGE)
            np.add.at(rates, drawn, rate)
    return rates


def _add(a: BlockGradient | None, b: BlockGradient | None) -> BlockGradient | None:
    return None if a is None or b is None else a.add(b)
