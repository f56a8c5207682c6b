"""Convolutional layers that are trained: `FilterBank`'s filters and biases, together with the classifier.

Everything but the layer itself is that of joint training (docs/joint.md): squared hinge on the max-pooled features of
unit norm, Adam with cosine decay, mini-batches, a start from the SVM on untrained filters, a number of epochs chosen
on held-out training images, and the SVM solved once more at the end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import CodedBlock, EncodedImages, Encoding, SingleBranch
from ddlcn.decisions import iter_decisions
from ddlcn.descriptors import describe
from ddlcn.experiments.filters import FilterBank
from ddlcn.images import NamedImage
from ddlcn.joint.choose import hold_out
from ddlcn.joint.objective import HingeLoss
from ddlcn.joint.optimise import Adam
from ddlcn.joint.training import IMAGES_PER_STEP
from ddlcn.pooling import assign_cells, count_cells
from ddlcn.svm import LinearSVM, SVMConfig, pick_class, train
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Epochs that are tried, and the length of the first steps, as joint training has them.
EPOCHS, RATE = (10, 30), 0.05


class Images(NamedTuple):
    """Images to learn from: n of them, with class indices (n,)."""

    items: Sequence[NamedImage]
    labels: NDArray[np.intp]


class PooledImage(NamedTuple):
    """One image through all layers."""

    X: Array  # (descriptors, m)
    responses: list[Array]  # of every layer, (descriptors, D_l)
    winners: Array  # (cells, filters): the descriptor with the largest response
    feature: Array  # (cells, filters), of unit norm
    norm: float


def pool_image(layers: Sequence[tuple[Array, Array]], X: Array, cells: Array, n_cells: int) -> PooledImage:
    """Forward: descriptors X (n, m), in cells (n, levels), to the feature of one image."""
    responses, below = [], X
    for W, bias in layers:
        below = np.maximum(below @ W - bias, 0.0)
        responses.append(below)
    Z = np.hstack(responses)
    winners, values = np.zeros((n_cells, Z.shape[1]), np.intp), np.zeros((n_cells, Z.shape[1]))
    columns = np.arange(Z.shape[1])
    for level in cells.T:
        for cell in np.unique(level):
            inside = np.flatnonzero(level == cell)
            winners[cell] = inside[Z[inside].argmax(axis=0)]
            values[cell] = Z[winners[cell], columns]
    norm = float(np.linalg.norm(values)) or 1.0
    return PooledImage(X, responses, winners, values / norm, norm)


def backpropagate_image(layers: Sequence[tuple[Array, Array]], image: PooledImage, grad: Array) -> list[Array]:
    """Gradients of all filters and biases, W_1, b_1, W_2, ..., from that of the feature (cells, filters)."""
    grad = (grad - (grad * image.feature).sum() * image.feature) / image.norm
    grad = np.where(image.feature > 0.0, grad, 0.0)  # empty cells, and filters that are silent in one
    of_responses = np.zeros((len(image.X), grad.shape[1]), image.X.dtype)
    columns = np.arange(grad.shape[1])
    for winners, row in zip(image.winners, grad, strict=True):
        of_responses[winners, columns] += row
    ends = np.cumsum([each.shape[1] for each in image.responses])
    found: list[Array] = []
    from_above: Array = np.zeros((len(image.X), image.responses[-1].shape[1]), image.X.dtype)
    for l in range(len(layers) - 1, -1, -1):
        W, response = layers[l][0], image.responses[l]
        below = image.responses[l - 1] if l > 0 else image.X
        of_sums = (of_responses[:, ends[l] - W.shape[1] : ends[l]] + from_above) * (response > 0.0)
        found = [below.T @ of_sums, -of_sums.sum(axis=0), *found]
        from_above = of_sums @ W.T if l > 0 else from_above
    return found


class FilterTraining:
    """Trains a bank of filters and an SVM together.

    Parameters
    ----------
    bank : FilterBank
        Changed in place.
    images : Images; look : function of an item
        Training images, and their descriptors (n, m) and cells (n, levels).
    svm : LinearSVM; config : SVMConfig
        Fitted to the features of these filters, and how.
    n_cells, n_epochs : int
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """

    def __init__(
        self,
        bank: FilterBank,
        images: Images,
        look: Callable[[NamedImage], tuple[Array, Array]],
        svm: LinearSVM,
        config: SVMConfig,
        n_cells: int,
        n_epochs: int,
        n_jobs: int | None = None,
    ) -> None:
        self._bank, self._images, self._look, self._n_cells = bank, images, look, n_cells
        self._n_epochs, self._n_jobs = n_epochs, n_jobs
        self._loss = HingeLoss.prepare(images.labels, config)
        self._coef = np.ascontiguousarray(svm.coef.T, np.float64)  # (cells * filters, rows)
        self._intercept = svm.intercept.astype(np.float64)
        layers = [each for layer in bank.layers for each in layer]
        n_steps = n_epochs * -(-len(images.items) // IMAGES_PER_STEP)
        self._adam = Adam([self._coef, self._intercept, *layers], RATE, n_steps)

    def run(self, seed: np.random.SeedSequence) -> None:
        """All epochs."""
        rng = np.random.default_rng(seed)
        for _ in range(self._n_epochs):
            order = rng.permutation(len(self._images.items))
            for start in range(0, len(order), IMAGES_PER_STEP):
                gradients, _ = self.measure(order[start : start + IMAGES_PER_STEP])
                self._adam.update(gradients, self._n_jobs)

    def measure(self, chosen: NDArray[np.intp]) -> tuple[list[Array], float]:
        """Gradients of weights, intercepts, filters and biases on some images, and their classification error."""
        layers = self._bank.layers

        def go_forward(i: int) -> PooledImage:
            return pool_image(layers, *self._look(self._images.items[i]), self._n_cells)

        forward = list(map_threads(go_forward, chosen.tolist(), self._n_jobs))
        features = np.stack([each.feature.ravel() for each in forward])  # (images, cells * filters)
        loss, of_decisions = self._loss.measure(features @ self._coef + self._intercept, chosen)
        of_coef = self._loss.penalty * self._coef + features.T @ of_decisions
        of_intercept = self._loss.penalty * self._intercept + of_decisions.sum(axis=0)

        def go_back(each: tuple[PooledImage, Array]) -> list[Array]:
            image, row = each
            return backpropagate_image(layers, image, (self._coef @ row).reshape(image.feature.shape))

        sums: list[Array] = []
        for found in map_threads(go_back, zip(forward, of_decisions, strict=True), self._n_jobs):
            sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else found
        return [of_coef, of_intercept, *sums], loss


def make_trained_block(
    bank: FilterBank,
    descriptors: Any,
    pyramid: tuple[int, ...],
    images: Images,
    config: SVMConfig,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> CodedBlock:
    """The block of a bank of filters trained on images; its number of epochs is chosen on a held-out third of them."""
    rng = np.random.default_rng(seed)
    inside, outside = (_take(images, part) for part in hold_out(images.labels, rng))

    def look(item: NamedImage) -> tuple[Array, Array]:
        d = describe(descriptors, item)
        return np.asarray(d.values, bank.dtype), assign_cells(d.xy, d.image_shape, pyramid)

    def fit(own: FilterBank, seen: Images) -> tuple[Encoding, LinearSVM]:
        """The SVM on the features of these filters."""
        block = CodedBlock(own, np.ones(own.n_atoms), None, pyramid)
        encoding = Encoding([SingleBranch(descriptors, block, pyramid)], (1.0,))
        return encoding, train(EncodedImages(encoding, seen.items, n_jobs), seen.labels, config, n_jobs).svm

    def learn(seen: Images, n_epochs: int) -> FilterBank:
        trained = copy.deepcopy(bank)
        _, svm = fit(trained, seen)
        training = FilterTraining(trained, seen, look, svm, config, count_cells(pyramid), n_epochs, n_jobs)
        training.run(copy.deepcopy(seed))
        return trained

    right = []
    for n_epochs in EPOCHS:
        decided = iter_decisions(*fit(learn(inside, n_epochs), inside), outside.items, n_jobs)
        found = pick_class(np.concatenate([each.decisions for each in decided]))
        right.append(int((found == outside.labels).sum()))
    best = EPOCHS[int(np.argmax(right))]
    return CodedBlock(learn(images, best), np.ones(bank.n_atoms), None, pyramid)


def _take(images: Images, chosen: NDArray[np.intp]) -> Images:
    return Images([images.items[i] for i in chosen.tolist()], images.labels[chosen])
