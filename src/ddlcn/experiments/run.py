"""One run: settings and a seed in, a row out. Depths that share everything else share the work (DESIGN 2.1).

split -> layer 1 -> codes of all images, pooled once -> for each depth: deeper layers, weights, SVM, test
"""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn import __version__
from ddlcn.coding import LocalityCoder, encode_layers, path_weights
from ddlcn.coding.llc import LLCCoder
from ddlcn.datasets import Dataset
from ddlcn.dictionaries import learn_deep_layers, learn_layer1, resolve_deep_atoms
from ddlcn.experiments.filters import FilterBank
from ddlcn.experiments.memory import peak_memory_mb, reset_peak_memory
from ddlcn.experiments.protocol import Split, accuracies, draw_split
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.features import DenseSIFT, describe_by_class
from ddlcn.features.images import read_image
from ddlcn.network import TOL, ForwardPass, Network
from ddlcn.pooling import reweigh
from ddlcn.svm import SVMSettings, fit_svm, gram_matrix, prefer_gram

Array = NDArray[Any]
Say = Callable[[str], None]

PYRAMID = (1, 2, 4)
L1_RADIUS = 0.35
# Test images on which the time per image is measured, decoded beforehand.
N_TIMED = 64
# Test images whose descriptors are reconstructed.
N_RECONSTRUCTED = 50
# `quick`: so many classes, and so many images of each.
QUICK_CLASSES, QUICK_IMAGES = 6, 12


def run_depths(
    data: Dataset,
    settings: Settings,
    depths: Sequence[int],
    seed: int,
    n_jobs: int | None = None,
    say: Say = lambda _: None,
    recall: Callable[[str, Callable[[], Array]], Array] = lambda _, make: make(),
) -> Iterator[Row]:
    """Run the same settings at several depths; yield a row per depth as it is finished.

    Parameters
    ----------
    data : Dataset
    settings : Settings
        Its `n_layers` does not count.
    depths : sequence of int
    seed : int
    n_jobs : int, optional
        Threads.
    say : function of a line of text
        Told what is being done.
    recall : function of a name and of a function that makes an array
        Returns the array of that name from an earlier run, or makes it.
    """
    reset_peak_memory()
    begin = time.perf_counter()
    images, labels, is_test = _take_part(data, settings)
    split = draw_split(settings, labels, is_test, seed)
    choice_seed, layer1_seed, deep_seed, filter_seed = np.random.SeedSequence(seed).spawn(4)
    features = DenseSIFT(
        patch_size=settings.patch_size if len(settings.patch_size) > 1 else settings.patch_size[0],
        step=settings.step,
        max_side=settings.max_side,
        min_side=settings.min_side or None,
    )
    named = list(zip(data.image_names, images, strict=False)) if images is data.images else list(images)
    template = Row(
        settings, seed, n_train=len(split.train), note=split.note, class_names=list(data.class_names),
        data=data.identity, versions=_versions(), machine=_machine(),
    )  # fmt: skip

    def learn() -> Array:
        say("learning dictionaries")
        chosen = [named[i] for i in split.dictionary]
        by_class = describe_by_class(features, chosen, labels[split.dictionary], None, choice_seed)
        atoms: Array = learn_layer1(by_class, settings.atoms_per_class, L1_RADIUS, layer1_seed, n_jobs)
        return atoms

    layer1 = recall(_name_dictionary(data, settings, split, seed), learn)
    if settings.measure == "approximation":
        yield _approximate(template, named, split, layer1, features, max(depths), deep_seed, n_jobs, say)
        return

    shared: Any = None
    for depth in sorted(depths):
        own = replace(settings, n_layers=depth)
        dictionaries = _stack(layer1, depth, deep_seed)
        if settings.layer == "filters":
            sample = np.concatenate([features.transform([named[i][1]])[0].values for i in split.dictionary[:200]])
            coder: Any = FilterBank(sample, [len(layer) for layer in dictionaries], filter_seed)
        elif settings.coder == "llc":
            coder = LLCCoder(layer1, settings.beta, settings.n_neighbors)
        else:
            coder = LocalityCoder(layer1, settings.beta, settings.n_neighbors, TOL)
        ones = np.ones(coder.n_atoms)
        forward = ForwardPass(features, coder, ones, ones, PYRAMID, settings.pool_power, "auto")
        if shared is None or settings.layer == "filters":  # filters see the descriptor at every depth
            say("coding images")
            shared = forward.transform(named, n_jobs)
        if settings.layer == "filters":
            F = shared
        else:
            k, beta = (settings.n_neighbors,) * depth, (settings.beta,) * depth
            P, N = path_weights(encode_layers(dictionaries, beta, k, TOL, 1), len(layer1), settings.pool_power)
            F = reweigh(shared, np.sqrt(P), np.sqrt(N))
        say(f"depth {depth}: classifier")
        yield _classify(replace(template, settings=own), F, forward, named, features, labels, split, begin, n_jobs)


def _classify(
    row: Row,
    F: Any,
    forward: ForwardPass,
    named: Sequence[tuple[str, Any]],
    features: DenseSIFT,
    labels: NDArray[np.intp],
    split: Split,
    begin: float,
    n_jobs: int | None,
) -> Row:
    """Train on the training rows of F, test on the test rows."""
    n_classes = int(labels.max()) + 1
    train = F[split.train]
    gram = gram_matrix(train) if prefer_gram(train, n_classes) else None
    which = SVMSettings(n_classes, row.settings.C, "liblinear", np.ones(n_classes))
    machine = fit_svm(train, gram, labels[split.train], which, n_jobs)
    fitted = time.perf_counter()
    del train, gram
    test = F[split.test]
    decisions = machine.decide(test)
    classify = (time.perf_counter() - fitted) / len(split.test)
    winners = (decisions > 0).astype(np.intp) if decisions.ndim == 1 else decisions.argmax(axis=1)
    confusion = np.zeros((n_classes, n_classes), np.int64)
    np.add.at(confusion, (labels[split.test], winners), 1)
    overall, by_class = accuracies(confusion)
    wrong = [[int(a), int(b), int(confusion[a, b])] for a, b in np.argwhere(confusion) if a != b]
    return replace(
        row, accuracy=overall, mean_over_classes=by_class, mistakes=wrong,
        class_totals=confusion.sum(axis=1).tolist(), seconds_to_classify=classify,
        seconds_per_image=classify + _time_features(forward, named, features, split.test), fit_seconds=fitted - begin,
        peak_memory_mb=peak_memory_mb(), finished=_now(),
    )  # fmt: skip


def _time_features(
    forward: ForwardPass, named: Sequence[tuple[str, Any]], features: DenseSIFT, test: NDArray[np.intp]
) -> float:
    """Seconds per image from decoded pixels to the feature, one thread."""
    chosen = [named[i] for i in test[:: max(1, len(test) // N_TIMED)][:N_TIMED]]
    decoded = [(name, read_image(image, max_side=features.max_side, name=name)) for name, image in chosen]
    begin = time.perf_counter()
    forward.transform(decoded, n_jobs=1)
    return (time.perf_counter() - begin) / len(decoded)


def _approximate(
    row: Row,
    named: Sequence[tuple[str, Any]],
    split: Split,
    layer1: Array,
    features: DenseSIFT,
    depth: int,
    deep_seed: np.random.SeedSequence,
    n_jobs: int | None,
    say: Say,
) -> Row:
    """Relative error ||x - y^(l)||^2 / ||x||^2 of each layer's approximation, over descriptors of test images."""
    say("reconstructing descriptors")
    settings = row.settings
    dictionaries = _stack(layer1, depth, deep_seed)
    betas, k = (settings.beta,) * depth, (settings.n_neighbors,) * depth
    network = Network(dictionaries, features, betas, k, PYRAMID, settings.pool_power, "auto")
    chosen = [named[i] for i in split.test[:: max(1, len(split.test) // N_RECONSTRUCTED)][:N_RECONSTRUCTED]]
    squares, total = np.zeros(depth), 0.0
    for (_, image), layers in zip(chosen, network.reconstruct(chosen, n_jobs), strict=True):
        X = features.transform([image])[0].values.astype(np.float64)
        total += float((X**2).sum())
        squares += [float(((X - layer) ** 2).sum()) for layer in layers]
    errors = (squares / total).tolist()
    return replace(row, settings=replace(settings, n_layers=depth), errors=errors, finished=_now())


def _stack(layer1: Array, depth: int, seed: np.random.SeedSequence) -> list[Array]:
    """Layer 1 and the deeper layers on it. A seed object counts its children, so it is made anew each time."""
    sizes = resolve_deep_atoms("auto", depth, len(layer1))
    fresh = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    return [layer1, *learn_deep_layers(layer1, sizes, L1_RADIUS, fresh)]


def _take_part(data: Dataset, settings: Settings) -> tuple[Any, NDArray[np.intp], Array | None]:
    """Images, labels and the fixed split; for `quick` a few images of a few classes."""
    if not settings.quick:
        return data.images, data.labels, data.is_test
    chosen = []
    for c in range(min(QUICK_CLASSES, len(data.class_names))):
        groups = (
            [data.labels == c] if data.is_test is None else [(data.labels == c) & (data.is_test == s) for s in (0, 1)]
        )
        chosen += [np.flatnonzero(group)[:QUICK_IMAGES] for group in groups]
    part = np.concatenate(chosen)
    named = [(data.image_names[i], data.images[i]) for i in part]
    return named, data.labels[part], None if data.is_test is None else data.is_test[part]


def _name_dictionary(data: Dataset, settings: Settings, split: Split, seed: int) -> str:
    """What layer 1 depends on, and nothing else: (55-15) of 32 training images is (A-15)."""
    parts = (
        data.identity, settings.quick, settings.atoms_per_class, settings.patch_size, settings.step, settings.max_side,
        settings.min_side, L1_RADIUS, seed, __version__,
    )  # fmt: skip
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(split.dictionary.astype("<i8").tobytes())
    return digest.hexdigest()[:24]


def _versions() -> str:
    import numba
    import scipy
    import sklearn

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    others = ", ".join(f"{name} {module.__version__}" for name, module in packages.items())
    return f"ddlcn {__version__}, Python {platform.python_version()}, {others}"


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
