"""Which of several complete recipes suits the pictures: by their looks, and judged on folds of training images.

On the folds everything is learned anew; only variants of one recipe share their dictionaries. With few images folds
decide little, and what can be seen without labels counts more; where a class has a single image it is all that counts.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.model_selection import StratifiedKFold

from ddlcn.choosing.look import see_colour, see_kind
from ddlcn.choosing.trial import Trial
from ddlcn.configuration import BRANCH_PARAMETERS, EncoderConfig, configure
from ddlcn.descriptors import keep_pixels
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.presets import PARAMETERS, TRIALS, get_preset
from ddlcn.utils.sampling import draw_per_class

# Images that recipes are tried on, at most (but two of every class), and folds: enough to see which recipe is ahead, at
# a fraction of the time of the final fit.
MAX_IMAGES, N_FOLDS = 300, 2
# Folds for variants of one recipe, which share dictionaries: cheap, and each learns from most of the images.
MOST_FOLDS = 5
# Another recipe than that for the looks of the images must be ahead so far that chance has less than this probability.
CHANCE = 0.05
# Images that another recipe must recognise beyond the likely one, at least, for that: 1 / 2^5 is less, 1 / 2^4 is more.
FEWEST_TO_GAIN = 5
# What suits pictures of each kind; the first that is there.
BY_LOOK = {"drawn": ("drawn",), "aligned": ("aligned",), "photo": ("backbone", "photo")}
# Recipes that are only for pictures that look so: without ink on a background there is none to centre.
ONLY_FOR = {"drawn": "drawn"}
# Of a recipe that was chosen: the same with other weights and copies, which nobody can see in the pictures.
VARIANTS = {"photo": ("colour", "turned")}
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
    splits = folds.split(chosen, labels[chosen])
    contest = _Contest(defaults, [Trial(training, chosen[a], chosen[b], seeds, n_jobs) for a, b in splits])
    variants = {each for several in VARIANTS.values() for each in several}
    others = [name for name in recipes if name not in (likely, *variants) and ONLY_FOR.get(name, kind) == kind]
    best, accuracies = contest.find_better(likely, others)
    if best != likely:
        reason = "ahead"
    elif len(accuracies) > 1:
        reason += ", and no other was clearly ahead"
    elif others:
        reason += ", and it made too few mistakes for another to be clearly ahead"
    finer = [name for name in VARIANTS.get(best, ()) if name in recipes]
    if "colour" in finer and not see_colour(training.items, n_jobs):
        finer.remove("colour")
    why = f"{best}, {reason} on {N_FOLDS} folds of {len(chosen)} training images: {_list(accuracies)}"
    if finer and not contest.is_good_enough(best):
        usual = best
        best, refined = contest.refine((usual, *finer), Trial(training, chosen, chosen[:0], seeds, n_jobs))
        accuracies |= refined
        on = f"on folds that share dictionaries: {_list(refined)}"
        why = f"{why}; and {on}" if best == usual else f"{best}, ahead of {usual} {on}; before that {why}"
    return Choice(recipes[best], accuracies, why)


def _list(accuracies: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * accuracy:.1f} %" for name, accuracy in accuracies.items())


class _Contest:
    """Recipes, in their smaller form, on the same splits of training images.

    Parameters
    ----------
    defaults : mapping
        As of `choose_recipe`.
    trials : list of Trials
    """

    def __init__(self, defaults: Mapping[str, Any], trials: list[Trial]) -> None:
        self._defaults, self._trials = defaults, trials
        self._right: dict[str, NDArray[np.bool_]] = {}

    def find_better(self, likely: str, others: Sequence[str]) -> tuple[str, dict[str, float]]:
        """Another recipe that recognises surely more images than the likely one, or that; and all accuracies."""
        self._try(likely)
        for name in () if self.is_good_enough(likely) else others:
            self._try(name, rival=likely)
        y_true = np.concatenate([trial.y_true for trial in self._trials])
        accuracies = {name: average_over_classes(y_true[: len(seen)], seen) for name, seen in self._right.items()}
        better = [name for name, seen in self._right.items() if is_surely_better(seen, self._right[likely])]
        return max(better, key=lambda name: accuracies[name], default=likely), accuracies

    def is_good_enough(self, name: str) -> bool:
        """Whether it makes too few mistakes for another to be surely better."""
        return bool((~self._right[name]).sum() < FEWEST_TO_GAIN)

    def refine(self, family: Sequence[str], trial: Trial) -> tuple[str, dict[str, float]]:
        """A variant of a recipe (the first of the family) under which the true class surely moves up, or the recipe.

        They share their dictionaries, so those are learned once, and each fold learns from most of the images. All
        images tell something, not only those that one of the two recognises: the decision values are alike.
        """
        labels = trial.labels
        folds = StratifiedKFold(min(MOST_FOLDS, int(np.bincount(labels).min())), shuffle=True, random_state=0)
        ranks = {}
        for name in family:
            recipe = make_recipe(name, self._defaults, trial=True)
            ranks[name] = trial.rank_inside(recipe.config, recipe.parameters, folds)
        accuracies = {name: average_over_classes(labels, own == 0) for name, own in ranks.items()}
        usual = family[0]
        better = [name for name, own in ranks.items() if is_ahead(*_compare(own, ranks[usual]))]
        best = max(better, key=lambda name: accuracies[name], default=usual)
        return best if accuracies[best] > accuracies[usual] else usual, accuracies

    def _try(self, name: str, rival: str | None = None) -> None:
        """Recognise the images by a recipe; not to the end where it is no better than its rival at first."""
        recipe, seen = make_recipe(name, self._defaults, trial=True), np.empty(0, bool)
        for trial in self._trials:
            seen = np.concatenate([seen, trial.rank(recipe.config, recipe.parameters) == 0])
            if rival is not None and seen.sum() <= self._right[rival][: len(seen)].sum():
                break  # it will hardly be far ahead in the end: half the time is saved
        self._right[name] = seen


def average_over_classes(y_true: NDArray[np.intp], right: NDArray[np.bool_]) -> float:
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
    return is_ahead(*_compare(~right, ~reference))


def is_ahead(gained: int, lost: int) -> bool:
    """Whether so many wins against so many losses are more than chance: a one-sided sign test."""
    return gained > lost and bool(binom.sf(gained - 1, gained + lost, 0.5) < CHANCE)


def _compare(ranks: NDArray[Any], reference: NDArray[Any]) -> tuple[int, int]:
    """Of how many images (n,) the true class is nearer to the first place than by the reference, and farther."""
    return int((ranks < reference).sum()), int((ranks > reference).sum())
