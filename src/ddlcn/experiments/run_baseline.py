"""One run of another method than DDLCN: the same images, splits and seeds, the same numbers in its row.

split -> (vectors, shared by all methods that see the same) -> fit, within the budget -> predict
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ddlcn import __version__
from ddlcn.baselines.inputs import make_input
from ddlcn.baselines.registry import find_method, list_arguments, make_method
from ddlcn.configuration import split_features
from ddlcn.datasets import Dataset
from ddlcn.descriptors import DenseColour, DenseSIFT
from ddlcn.engines.compile import clock
from ddlcn.experiments.measure import N_TIMED, note_accuracy, note_joint, now, start_row
from ddlcn.experiments.memory import peak_memory_mb, reset_peak_memory
from ddlcn.experiments.protocol import Split, draw_split, draw_unlabelled, pick_run, take_part
from ddlcn.experiments.run import make_features
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.images import read_image
from ddlcn.images.colour import read_colour_values, read_picture
from ddlcn.presets import get_preset
from ddlcn.utils.threads import map_threads
from ddlcn.utils.time_limit import OverBudget, limit_time

Array = NDArray[Any]
Recall = Callable[[str, Callable[[], Array]], Array]
# No method looks at more: photos are brought to this longest side, as by DenseSIFT.
MAX_SIDE = 300
# Seconds that a fit may take; beyond them the run is "over budget".
BUDGET = 600


def run_method(
    data: Dataset,
    settings: Settings,
    seed: int,
    n_jobs: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    recall: Recall = lambda _, make: make(),
) -> Row:
    """Run one method; the parameters are those of `run_settings`."""
    reset_peak_memory()
    data = pick_run(data, seed)
    # "auto" brings its own descriptors, so the pictures themselves must have the size that the table asks for.
    side = settings.max_side if settings.method == "ddlcn auto" else MAX_SIDE
    images, labels, is_test = _open(data, settings.quick, side, _sees_colour(settings.method))
    split = draw_split(settings, labels, is_test, seed)
    row = start_row(settings, seed, split, data)
    say("reading images")
    in_colour = find_method(settings.method).works_on == "photos" or dict(settings.vectors).get("kind") == "cnn"
    items: Any = Files(images.named) if in_colour else images
    if not in_colour:
        images.take(np.concatenate([split.train, split.test]))
    costs = np.zeros(2)
    if settings.vectors:
        say("making vectors")
        items, costs = _make_vectors(data, items, settings, split, seed, n_jobs, recall)
    options = _list_options(settings)
    if "unlabelled" in options:  # a number of images; the method gets the images
        options["unlabelled"] = _take(items, draw_unlabelled(options["unlabelled"], split, is_test, seed))
    model = make_method(settings.method, seed, n_jobs, **options)
    say("learning")
    begin = clock()
    try:
        # Joint training is an experiment of its own, and takes what it takes.
        with limit_time(BUDGET) if not getattr(model, "joint", False) else nullcontext():
            model.fit(_take(items, split.train), labels[split.train])
    except OverBudget:
        note = f"over budget: learning takes more than {BUDGET // 60} minutes"
        return replace(row, note=note, fit_seconds=float(BUDGET), finished=now())
    except np.linalg.LinAlgError as error:  # LAPACK gives up now and then; the other runs go on
        return replace(row, note=f"failed: {error}", finished=now())
    fit_seconds = clock() - begin
    say("recognising")
    y_pred = np.concatenate([model.predict(part) for part in _cut(_take(items, split.test))])
    row = note_accuracy(row, labels[split.test], y_pred, int(labels.max()) + 1)
    if settings.n_test:  # a part of the test images: who is predicted as whom is read off the whole
        row = replace(row, mistakes=[], class_totals=[])
    few = split.test[:: max(1, len(split.test) // N_TIMED)][:N_TIMED]
    seconds = _time(
        model.set_params(n_jobs=1).predict, items.decode(few) if isinstance(items, Files) else _take(items, few)
    )
    return replace(
        note_joint(row, model), fit_seconds=float(costs[0]) + fit_seconds, seconds_to_classify=seconds,
        seconds_per_image=float(costs[1]) + seconds, peak_memory_mb=peak_memory_mb(), finished=now(),
    )  # fmt: skip


def _sees_colour(name: str) -> bool:
    """Whether a method of ours describes colour; all others see grey values."""
    method = find_method(name)
    if method.made_by != "DDLCN" or method.works_on != "descriptors":
        return False
    preset = method.arguments["preset"]
    kinds = split_features(get_preset(preset).get("features", "sift"))
    return preset == "auto" or any(isinstance(kind, DenseColour) for kind, _ in kinds)


def _list_options(settings: Settings) -> dict[str, Any]:
    """Arguments of the method: its own; the settings' descriptors and, if not the usual 15, `atoms_per_class`.

    DDLCN has the descriptors of its preset, on pictures of the settings' size.
    """
    options = dict(settings.options)
    method = find_method(settings.method)
    if method.works_on == "photos":
        return options
    if method.made_by == "DDLCN":
        features = get_preset(method.arguments["preset"]).get("features")
        if features is not None:
            sides = [(replace_side(kind, settings.max_side), own) for kind, own in split_features(features)]
            options["features"] = sides if isinstance(features, list) else sides[0][0]
        return options
    if method.works_on == "descriptors":
        options["features"] = make_features(settings)
    if settings.atoms_per_class != Settings.atoms_per_class and "atoms_per_class" in list_arguments(settings.method):
        options["atoms_per_class"] = settings.atoms_per_class
    return options


def replace_side(features: DenseSIFT | DenseColour, max_side: int) -> DenseSIFT | DenseColour:
    """The same descriptors on pictures of at most that size."""
    changed: DenseSIFT | DenseColour = clone(features).set_params(max_side=min(max_side, features.max_side or max_side))
    return changed


class Decoded:
    """The images of a data set as pictures of 8 bits, grey or as they are: no measured time includes reading files."""

    def __init__(self, named: Sequence[tuple[str, Any]], max_side: int, in_colour: bool = False) -> None:
        self.named, self._max_side, self._in_colour = named, max_side, in_colour
        self._read: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self.named)

    def take(self, chosen: NDArray[np.intp]) -> list[Array]:
        """Some of the images."""
        missing = [i for i in chosen.tolist() if i not in self._read]
        self._read.update(zip(missing, map_threads(self._decode, missing), strict=True))
        return [self._read[i] for i in chosen.tolist()]

    def _decode(self, i: int) -> Array:
        name, image = self.named[i]
        if self._in_colour:
            colours = read_colour_values(image, max_side=self._max_side, name=name)
            if np.ptp(colours, axis=2).any():
                return np.round(255.0 * colours).astype(np.uint8)
        return np.round(255.0 * read_image(image, max_side=self._max_side, name=name)).astype(np.uint8)


class Files:
    """The images of a data set as they are, in colour, for networks: read by whoever looks at them."""

    def __init__(self, named: Sequence[tuple[str, Any]]) -> None:
        self.named = named

    def __len__(self) -> int:
        return len(self.named)

    def take(self, chosen: NDArray[np.intp]) -> list[Any]:
        """Some of the images."""
        return [self.named[i][1] for i in chosen.tolist()]

    def decode(self, chosen: NDArray[np.intp]) -> list[Array]:
        """The same as arrays: read, and so of no file that a network's maps could have been kept of."""
        return [read_picture(self.named[i][1], self.named[i][0]) for i in chosen.tolist()]


@lru_cache(maxsize=1)  # the runs of a data set follow each other
def _open(
    data: Dataset, quick: bool, max_side: int, in_colour: bool
) -> tuple[Decoded, NDArray[np.intp], NDArray[Any] | None]:
    images, labels, is_test = take_part(data, Settings(data.name, quick=quick))
    return Decoded(images, max_side, in_colour), labels, is_test


def _make_vectors(
    data: Dataset,
    images: Decoded | Files,
    settings: Settings,
    split: Split,
    seed: int,
    n_jobs: int | None,
    recall: Recall,
) -> tuple[Array, Array]:
    """Vectors (n, m), zero for images of neither side; and what they cost: seconds to learn how, seconds per image.

    Every method that sees the same vectors recalls them.
    """
    chosen = np.concatenate([split.train, split.test])
    arguments = dict(settings.vectors)
    parts = [data.identity, settings.quick, settings.vectors, seed, __version__]
    if arguments["kind"] == "pyramid":
        arguments["features"] = make_features(settings)
        parts += [settings.patch_size, settings.step, settings.max_side, settings.min_side, settings.border]
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(chosen.astype("<i8").tobytes())
    name = f"vectors-{digest.hexdigest()[:24]}"
    costs = np.zeros(2)

    def make() -> Array:
        own = {name: value for name, value in arguments.items() if name != "kind"}
        transformer = make_input(arguments["kind"], seed, n_jobs, **own)
        begin = clock()
        transformer.fit(_take(images, split.train))
        costs[0] = clock() - begin
        rows = np.concatenate([transformer.transform(part) for part in _cut(_take(images, chosen))])
        few = split.test[:N_TIMED]
        timed = images.decode(few) if isinstance(images, Files) else _take(images, few)
        costs[1] = _time(transformer.set_params(n_jobs=1).transform, timed)
        return rows.astype(np.float32)

    rows = recall(name, make)
    costs = recall(f"{name}-costs", lambda: costs)
    vectors = np.zeros((len(images), rows.shape[1]), np.float32)
    vectors[chosen] = rows
    return vectors, costs


def _time(work: Callable[[Any], Any], items: Any) -> float:
    """Seconds per item, one thread."""
    with threadpool_limits(1):
        begin = clock()
        work(items)
        return (clock() - begin) / len(items)


def _take(items: Any, chosen: NDArray[np.intp]) -> Any:
    return items[chosen] if isinstance(items, np.ndarray) else items.take(chosen)


def _cut(items: Any, size: int = 1000) -> Iterator[Any]:
    """In parts, so that memory does not grow with the number of test images."""
    return (items[start : start + size] for start in range(0, len(items), size))
