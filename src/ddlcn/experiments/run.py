"""One run: settings and a seed in, a row out. Depths that share everything else share the work (DESIGN 2.1).

split -> layer 1 -> codes of all images, pooled once -> for each depth: deeper layers, weights, SVM, test
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn import __version__
from ddlcn.coding import LocalityCoder, encode_layers, path_weights
from ddlcn.coding.llc import LLCCoder
from ddlcn.coding.tangents import TangentModel
from ddlcn.datasets import Dataset
from ddlcn.dictionaries import (
    learn_deep_layers,
    learn_layer1,
    learn_residual_layers,
    learn_tangents,
    resolve_deep_atoms,
)
from ddlcn.engines.compile import clock
from ddlcn.experiments.filters import FilterBank
from ddlcn.experiments.measure import (
    Trial,
    judge_held,
    judge_streamed,
    make_features,
    make_network,
    measure_approximation,
    start_row,
)
from ddlcn.experiments.memory import reset_peak_memory
from ddlcn.experiments.protocol import Split, draw_split, take_part
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.features import describe_by_class, sample_descriptors
from ddlcn.network import TOL, ForwardPass
from ddlcn.pooling import reweigh

Array = NDArray[Any]
Say = Callable[[str], None]

L1_RADIUS = 0.35


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
    begin = clock()
    images, labels, is_test = take_part(data, settings)
    split = draw_split(settings, labels, is_test, seed)
    choice_seed, layer1_seed, deep_seed, filter_seed = np.random.SeedSequence(seed).spawn(4)
    features = make_features(settings)
    named = list(zip(data.image_names, images, strict=False)) if images is data.images else list(images)
    template = start_row(settings, seed, split, data)

    def learn() -> Array:
        say("learning dictionaries")
        chosen = [named[i] for i in split.dictionary]
        by_class = describe_by_class(features, chosen, labels[split.dictionary], None, choice_seed)
        atoms: Array = learn_layer1(by_class, settings.atoms_per_class, L1_RADIUS, layer1_seed, n_jobs)
        return atoms

    layer1 = recall(_name_dictionary(data, settings, split, seed), learn)
    trial = Trial(named, features, labels, split, begin, n_jobs)
    if settings.measure == "approximation":
        say("reconstructing descriptors")
        depth = max(depths)
        own = replace(template, settings=replace(settings, n_layers=depth))
        yield measure_approximation(own, trial, _stack(layer1, settings, depth, deep_seed, trial))
        return

    tangents = _take_tangents(settings, deep_seed, trial) if settings.tangents else None
    shared: Any = None
    for depth in sorted(depths):
        own = replace(template, settings=replace(settings, n_layers=depth))
        dictionaries = _stack(layer1, settings, depth, deep_seed, trial)
        if settings.depth == "residual" or tangents is not None:  # long features: never held for all images
            say(f"depth {depth}: coding images, classifier")
            yield judge_streamed(own, trial, make_network(own.settings, dictionaries, features, tangents))
            continue
        if settings.layer == "filters":
            sample = np.concatenate([features.transform([named[i][1]])[0].values for i in split.dictionary[:200]])
            coder: Any = FilterBank(sample, [len(layer) for layer in dictionaries], filter_seed)
        elif settings.coder == "llc":
            coder = LLCCoder(layer1, settings.beta, settings.n_neighbors)
        else:
            coder = LocalityCoder(layer1, settings.beta, settings.n_neighbors, TOL)
        ones = np.ones(coder.n_atoms)
        forward = ForwardPass(features, coder, ones, ones, settings.pyramid, settings.pool_power, "auto")
        if shared is None or settings.layer == "filters":  # filters see the descriptor at every depth
            say("coding images")
            shared = forward.transform(named, n_jobs)
        if settings.layer == "filters":
            F = shared
        else:
            deep_codes = encode_layers(dictionaries, *settings.list_coding(depth), TOL, 1)
            P, N = path_weights(deep_codes, len(layer1), settings.pool_power)
            F = reweigh(shared, np.sqrt(P), np.sqrt(N))
        say(f"depth {depth}: classifier")
        yield judge_held(own, trial, forward, F)


def _stack(layer1: Array, settings: Settings, depth: int, seed: np.random.SeedSequence, trial: Trial) -> list[Array]:
    """Layer 1 and the deeper layers on it. A seed object counts its children, so it is made anew each time."""
    sizes = resolve_deep_atoms(settings.deep_atoms or "auto", depth, len(layer1), settings.depth)
    fresh = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    if settings.depth == "augment" or depth == 1:
        return [layer1, *learn_deep_layers(layer1, sizes, L1_RADIUS, fresh)]
    sample_seed, learn_seed = fresh.spawn(2)
    sample = sample_descriptors(trial.features, trial.take(trial.split.train), sample_seed)
    how = (*settings.list_coding(depth), TOL, L1_RADIUS, learn_seed, trial.n_jobs)
    return [layer1, *learn_residual_layers(layer1, sample, sizes, *how)]


def _take_tangents(settings: Settings, seed: np.random.SeedSequence, trial: Trial) -> TangentModel:
    """The shared dictionary of the tangents, from training images."""
    fresh = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    sample_seed, _, learn_seed = fresh.spawn(3)
    sample = sample_descriptors(trial.features, trial.take(trial.split.train), sample_seed)
    how = (settings.beta, settings.n_neighbors, TOL, L1_RADIUS, learn_seed, trial.n_jobs)
    return learn_tangents(sample, settings.tangents, *how)


def _name_dictionary(data: Dataset, settings: Settings, split: Split, seed: int) -> str:
    """What layer 1 depends on, and nothing else: (55-15) of 32 training images is (A-15)."""
    parts = (
        data.identity, settings.quick, settings.atoms_per_class, settings.patch_size, settings.step, settings.max_side,
        settings.min_side, settings.border, L1_RADIUS, seed, __version__,
    )  # fmt: skip
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(split.dictionary.astype("<i8").tobytes())
    return digest.hexdigest()[:24]
