"""Which of several complete recipes suits the pictures: judged on folds of training images.

Logistic loss decides, not the number of images that are recognised: with few images that says little. Without labels
one can see which recipes are not worth a trial, and where a class has a single image that is all there is.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ddlcn.choosing.look import Impression, look_over
from ddlcn.choosing.losses import list_losses
from ddlcn.choosing.trial import Trial
from ddlcn.configuration import BRANCH_PARAMETERS, EncoderConfig, configure
from ddlcn.descriptors import keep_pixels
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.presets import PARAMETERS, TRIALS, get_preset
from ddlcn.utils.sampling import draw_per_class

# Images that recipes are tried on, at most (but two of every class): enough to see which recipe is ahead, at a fraction
# of the time of the final fit.
MAX_IMAGES = 300
# Where the recipe for the looks recognises this share, no other is tried.
ENOUGH = 0.95
# What suits pictures of each kind; the first that is there.
BY_LOOK = {"drawn": ("drawn",), "aligned": ("aligned",), "photo": ("backbone", "photo")}
# Tried last, for it has eight times the images to code, and only where one of these is the best so far.
LATE, PHOTOS = ("turned",), ("photo", "colour", "backbone")
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
        What every recipe that was tried reached, mean over classes; empty if nothing could be held out.
    why : str
        One line, for people.
    """

    recipe: Recipe
    accuracies: dict[str, float] = field(default_factory=dict)
    why: str = ""


class _Result(NamedTuple):
    """Of held-out images: how many are recognised, and the logistic loss; every class counts alike."""

    accuracy: float
    loss: float


def make_recipe(name: str, defaults: Mapping[str, Any], trial: bool = False) -> Recipe:
    """The recipe of a preset, or its smaller form; `defaults` are the parameters that it leaves as they are."""
    given = {**get_preset(name), **(TRIALS.get(name, {}) if trial else {})}
    parameters = {each: given.get(each, defaults[each]) for each in PARAMETERS}
    own = {each: parameters[each] for each in BRANCH_PARAMETERS}
    return Recipe(name, parameters, configure(parameters["features"], own, parameters["C"]))


def choose_recipe(
    names: Sequence[str], defaults: Mapping[str, Any], training: TrainingImages, seeds: Seeds, n_jobs: int | None
) -> Choice:
    """The recipe under which held-out training images are most likely of their class.

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
    seen = look_over(training.items, n_jobs)
    likely = next((name for name in BY_LOOK[seen.kind] if name in recipes), names[0])
    reason = f"since the images look {LOOKS[seen.kind]}"
    if np.bincount(labels).min() < 2:
        why = f"{likely}, {reason}; a class has a single image, so nothing could be tried"
        return Choice(recipes[likely], {}, why)
    rng = np.random.default_rng(copy.deepcopy(seeds.folds))
    chosen = draw_per_class(labels, max(2, MAX_IMAGES // len(training.classes)), rng)
    trial = Trial(training, chosen, seeds, n_jobs)
    results = {likely: _try(trial, likely, defaults)}
    best = likely
    for others in _list_rounds(recipes, likely, seen):
        if results[best].accuracy >= ENOUGH or (others == LATE and best not in PHOTOS):
            break
        results |= {name: _try(trial, name, defaults) for name in others}
        best = min(results, key=lambda name: results[name].loss)
    if len(results) == 1 and results[best].accuracy >= ENOUGH:
        reason += f", and it recognised at least {100 * ENOUGH:.0f} %"
    elif len(results) == 1:
        reason += ", and no other is made for them"
    elif best == likely:
        reason += ", and no other did better"
    else:
        reason = f"better than {likely}, which the images look like"
    accuracies = {name: result.accuracy for name, result in results.items()}
    tried = ", ".join(f"{name} {100 * accuracy:.1f} %" for name, accuracy in accuracies.items())
    why = f"{best}, {reason}, on {trial.n_folds} folds of {len(chosen)} training images: {tried}"
    return Choice(recipes[best], accuracies, why)


def _list_rounds(recipes: Mapping[str, Recipe], likely: str, seen: Impression) -> list[tuple[str, ...]]:
    """The others that are worth a trial: the cheap ones first, then the one that takes several times as long."""
    useless = {likely, *(() if seen.has_colour else ("colour",)), *(() if seen.is_plain else ("drawn",))}
    others = tuple(name for name in recipes if name not in useless)
    early = tuple(name for name in others if name not in LATE)
    return [each for each in (early, tuple(name for name in others if name in LATE)) if each]


def _try(trial: Trial, name: str, defaults: Mapping[str, Any]) -> _Result:
    """What a recipe, in its smaller form, makes of the held-out images."""
    recipe, labels = make_recipe(name, defaults, trial=True), trial.labels
    logits = trial.decide(recipe.config, recipe.parameters)
    totals = np.bincount(labels)
    accuracy = (np.bincount(labels, logits.argmax(axis=1) == labels) / totals).mean()
    return _Result(float(accuracy), float(list_losses(logits, labels, 1.0 / totals[labels]).min()))
