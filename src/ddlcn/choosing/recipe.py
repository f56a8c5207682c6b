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
from ddlcn.images.copies import add_copies
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.presets import PARAMETERS, get_preset
from ddlcn.svm import KeptFeatures, SVMConfig, pick_class, train
from ddlcn.utils.sampling import draw_per_class

# Images that recipes are judged on, at most (but two of every class), folds, and copies of each image in them: enough
# to see which recipe is ahead, at a fraction of the time of the final fit.
MAX_IMAGES, N_FOLDS, MAX_COPIES = 300, 2, 10
# Another recipe than that for the looks of the images must be ahead so far that chance has less than this probability.
CHANCE = 0.05
# Images that another recipe must recognise beyond the likely one, at least, for that: 1 / 2^5 is less, 1 / 2^4 is more.
FEWEST_TO_GAIN = 5
# What suits pictures of each kind; the first that is there.
BY_LOOK = {"drawn": ("drawn",), "aligned": ("aligned",), "photo": ("backbone", "accurate")}


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
        clearly behind after the first fold was not tried further.
    why : str
        One line, for people.
    """

    recipe: Recipe
    accuracies: dict[str, float] = field(default_factory=dict)
    why: str = ""


def make_recipe(name: str, defaults: Mapping[str, Any]) -> Recipe:
    """The recipe of a preset; `defaults` are the parameters that it leaves as they are."""
    given = get_preset(name)
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
    labels, recipes = training.labels, [make_recipe(name, defaults) for name in names]
    if len(recipes) == 1:
        return Choice(recipes[0], {}, f"{recipes[0].name}, the only one")
    likely, reason = _recognise_kind(recipes, training, n_jobs)
    if np.bincount(labels).min() < 2:
        why = f"{likely.name}, {reason}; a class has a single image, so nothing could be tried"
        return Choice(likely, {}, why)
    rng = np.random.default_rng(copy.deepcopy(seeds.folds))
    chosen = draw_per_class(labels, max(2, MAX_IMAGES // len(training.classes)), rng)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    splits = [(chosen[a], chosen[b]) for a, b in folds.split(chosen, labels[chosen])]
    y_true = labels[np.concatenate([test for _, test in splits])]
    right: dict[str, NDArray[np.bool_]] = {}
    for recipe in sorted(recipes, key=lambda recipe: recipe is not likely):  # the likely one first
        seen = np.empty(0, bool)
        for split in splits:
            y_pred = _predict(recipe, training, *split, copy.deepcopy(seeds), n_jobs)
            seen = np.concatenate([seen, y_pred == labels[split[1]]])
            if recipe is not likely and is_surely_better(right[likely.name][: len(seen)], seen):
                break  # it will not catch up: half the time is saved
        right[recipe.name] = seen
        if recipe is likely and (~seen).sum() < FEWEST_TO_GAIN:
            break  # no other can be surely better
    accuracies = {name: _average_over_classes(y_true[: len(seen)], seen) for name, seen in right.items()}
    better = [recipe for recipe in recipes if is_surely_better(right.get(recipe.name), right[likely.name])]
    best = max(better, key=lambda recipe: accuracies[recipe.name], default=likely)
    listed = ", ".join(f"{name} {100 * accuracy:.1f} %" for name, accuracy in accuracies.items())
    if better:
        reason = "ahead"
    elif len(right) > 1:
        reason += ", and no other was clearly ahead"
    else:
        reason += ", and it made too few mistakes for another to be clearly ahead"
    why = f"{best.name}, {reason} on {N_FOLDS} folds of {len(chosen)} training images: {listed}"
    return Choice(best, accuracies, why)


def _average_over_classes(y_true: NDArray[np.intp], right: NDArray[np.bool_]) -> float:
    """Mean over classes of the share of images (n,) that were recognised."""
    counts = np.bincount(y_true)
    return float((np.bincount(y_true, right)[counts > 0] / counts[counts > 0]).mean())


def is_surely_better(right: NDArray[np.bool_] | None, reference: NDArray[np.bool_]) -> bool:
    """Whether more held-out images (n,) are recognised than by another recipe, by more than chance would have it.

    A sign test over the images that only one of the two recognises: with a handful of images, being ahead by one or two
    says nothing, and what the images look like says more.
    """
    if right is None or len(right) < len(reference):  # given up
        return False
    gained, lost = int((right & ~reference).sum()), int((reference & ~right).sum())
    return gained > lost and binom.sf(gained - 1, gained + lost, 0.5) < CHANCE


def _recognise_kind(recipes: Sequence[Recipe], training: TrainingImages, n_jobs: int | None) -> tuple[Recipe, str]:
    """The recipe for what the images look like, or else the first, and why."""
    kind = see_kind(training.items, n_jobs)
    known = {recipe.name: recipe for recipe in recipes}
    for name in BY_LOOK[kind]:
        if name in known:
            look = {"drawn": "drawn", "aligned": "aligned", "photo": "neither drawn nor aligned"}[kind]
            return known[name], f"since the images look {look}"
    return recipes[0], "the first of the list"


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
    encoding = Encoding(branches, weigh_evenly(len(branches)))
    n_copies = min(recipe.parameters.get("copies", 0), MAX_COPIES)
    y = np.repeat(labels[inside], 1 + n_copies)
    rows = KeptFeatures(encoding.transform(add_copies(own.items, n_copies, seeds.copies), n_jobs), y)
    svm = train(rows, y, SVMConfig(n_classes, recipe.config.C, "liblinear", np.ones(n_classes)), n_jobs).svm
    return pick_class(svm.decide(encoding.transform([items[i] for i in outside.tolist()], n_jobs)))
