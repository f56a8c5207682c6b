"""Which of several complete recipes suits the pictures: by their looks, and judged on folds of training images.

On the folds everything is learned anew. With few images they decide little, and what can be seen without labels counts
more; where a class has a single image it is all that counts.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ddlcn.blocks import Encoding
from ddlcn.choosing.branch_weights import weigh_evenly
from ddlcn.choosing.look import see_kind
from ddlcn.configuration import BRANCH_PARAMETERS, EncoderConfig, configure
from ddlcn.descriptors import keep_pixels
from ddlcn.images.copies import add_copies
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.presets import PARAMETERS, TRIALS, get_preset
from ddlcn.svm import KeptFeatures, SVMConfig, pick_class, train
from ddlcn.utils.sampling import draw_per_class

# Images that recipes are tried on, at most (but two of every class), and folds: enough to see which recipe is ahead, at
# a fraction of the time of the final fit.
MAX_IMAGES, N_FOLDS = 300, 2
# Another recipe than that for the looks of the images must be ahead so far that chance has less than this probability.
CHANCE = 0.05
# Images that another recipe must recognise beyond the likely one, at least, for that: 1 / 2^5 is less, 1 / 2^4 is more.
FEWEST_TO_GAIN = 5
# What suits pictures of each kind; the first that is there.
BY_LOOK = {"drawn": ("drawn",), "aligned": ("aligned",), "photo": ("backbone", "photo")}
# Recipes that are only for pictures that look so: without ink on a background there is none to centre.
ONLY_FOR = {"drawn": "drawn"}
# Of each kind, for people.
LOOKS = {"drawn": "drawn", "aligned": "aligned", "photo": "neither drawn nor aligned"}


@dataclass(frozen=True)
class Recipe:
    """Complete settings under a name.

    Attributes
    ----------
    name : str
    parameters : mapping
        Of the classifier.
    config : EncoderConfig
        The same, checked.
    """

    name: str
    parameters: Mapping[str, Any]
    config: EncoderConfig


@dataclass(frozen=True)
class Choice:
    """The recipe that was chosen, and why.

    Attributes
    ----------
    recipe : Recipe
    accuracies : dict
        What every recipe that was tried reached, mean over classes; empty if nothing could be held out. One that was
        not ahead after the first fold was not tried further.
    why : str
        One line, for people.
    """

    recipe: Recipe
    accuracies: dict[str, float] = field(default_factory=dict)
    why: str = ""


def make_recipe(name: str, defaults: Mapping[str, Any], trial: bool = False) -> Recipe:
    """The recipe of a preset, or its smaller form; `defaults` are the parameters that it leaves as they are."""
    given = {**get_preset(name), **(TRIALS.get(name, {}) if trial else {})}
    parameters = {each: given.get(each, defaults[each]) for each in PARAMETERS}
    own = {each: parameters[each] for each in BRANCH_PARAMETERS}
    return Recipe(name, parameters, configure(parameters["features"], own, parameters["C"]))


def choose_recipe(
    names: Sequence[str], defaults: Mapping[str, Any], training: TrainingImages, seeds: Seeds, n_jobs: int | None
) -> Choice:
    """The recipe for what the images look like, or another that is surely better on held-out training images.

    Parameters
    ----------
    names : sequence of str
        Of presets.
    defaults : mapping
        Parameters of the classifier; those that a preset sets are not looked at.
    training : TrainingImages
    seeds : Seeds
        Copied: they can be used again.
    n_jobs : int, optional
    """
    labels, recipes = training.labels, {name: make_recipe(name, defaults) for name in names}
    if len(recipes) == 1:
        return Choice(recipes[names[0]], {}, f"{names[0]}, the only one")
    keep_pixels(training.items)  # every recipe reads them
    kind = see_kind(training.items, n_jobs)
    likely = next((name for name in BY_LOOK[kind] if name in recipes), names[0])
    reason = f"since the images look {LOOKS[kind]}"
    if np.bincount(labels).min() < 2:
        why = f"{likely}, {reason}; a class has a single image, so nothing could be tried"
        return Choice(recipes[likely], {}, why)
    rng = np.random.default_rng(copy.deepcopy(seeds.folds))
    chosen = draw_per_class(labels, max(2, MAX_IMAGES // len(training.classes)), rng)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    splits = [(chosen[a], chosen[b]) for a, b in folds.split(chosen, labels[chosen])]
    y_true = labels[np.concatenate([test for _, test in splits])]
    right: dict[str, NDArray[np.bool_]] = {}
    others = [name for name in recipes if name != likely and ONLY_FOR.get(name, kind) == kind]
    for name in (likely, *others):
        trial, seen = make_recipe(name, defaults, trial=True), np.empty(0, bool)
        for split in splits:
            y_pred = _predict(trial, training, *split, copy.deepcopy(seeds), n_jobs)
            seen = np.concatenate([seen, y_pred == labels[split[1]]])
            if name != likely and seen.sum() <= right[likely][: len(seen)].sum():
                break  # it will hardly be far ahead in the end: half the time is saved
        right[name] = seen
        if name == likely and (~seen).sum() < FEWEST_TO_GAIN:
            break  # no other can be surely better
    accuracies = {name: _average_over_classes(y_true[: len(seen)], seen) for name, seen in right.items()}
    better = [name for name in right if is_surely_better(right[name], right[likely])]
    best = max(better, key=lambda name: accuracies[name], default=likely)
    listed = ", ".join(f"{name} {100 * accuracy:.1f} %" for name, accuracy in accuracies.items())
    if better:
        reason = "ahead"
    elif len(right) > 1:
        reason += ", and no other was clearly ahead"
    elif others:
        reason += ", and it made too few mistakes for another to be clearly ahead"
    why = f"{best}, {reason} on {N_FOLDS} folds of {len(chosen)} training images: {listed}"
    return Choice(recipes[best], accuracies, why)


def _average_over_classes(y_true: NDArray[np.intp], right: NDArray[np.bool_]) -> float:
    """Mean over classes of the share of images (n,) that were recognised."""
    counts = np.bincount(y_true)
    return float((np.bincount(y_true, right)[counts > 0] / counts[counts > 0]).mean())


def is_surely_better(right: NDArray[np.bool_], reference: NDArray[np.bool_]) -> bool:
    """Whether more held-out images (n,) are recognised than by another recipe, by more than chance would have it.

    A sign test over the images that only one of the two recognises: with a handful of images, being ahead by one or two
    says nothing, and what the images look like says more.
    """
    if len(right) < len(reference):  # given up
        return False
    gained, lost = int((right & ~reference).sum()), int((reference & ~right).sum())
    return gained > lost and binom.sf(gained - 1, gained + lost, 0.5) < CHANCE


def _predict(
    recipe: Recipe,
    training: TrainingImages,
    inside: NDArray[np.intp],
    outside: NDArray[np.intp],
    seeds: Seeds,
    n_jobs: int | None,
) -> NDArray[np.intp]:
    """Class indices of the images `outside`, by the recipe learned from those `inside`."""
    items, labels, n_classes = training.items, training.labels, len(training.classes)
    own = TrainingImages([items[i] for i in inside.tolist()], labels[inside], training.classes)
    fresh = [replace(each, descriptors=clone(each.descriptors, safe=False)) for each in recipe.config.branches]
    branches = [learn_branch(each, own, copy.deepcopy(seeds), n_jobs) for each in fresh]
    encoding = Encoding(branches, recipe.config.weights or weigh_evenly(len(branches)))
    n_copies = recipe.parameters["copies"]
    y = np.repeat(labels[inside], 1 + n_copies)
    rows = KeptFeatures(encoding.transform(add_copies(own.items, n_copies, seeds.copies), n_jobs), y)
    svm = train(rows, y, SVMConfig(n_classes, recipe.config.C, "liblinear", np.ones(n_classes)), n_jobs).svm
    return pick_class(svm.decide(encoding.transform([items[i] for i in outside.tolist()], n_jobs)))
