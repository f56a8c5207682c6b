"""k, beta, pooling power and C chosen on folds of the training images; no other image is looked at.

Dictionaries are learned anew for every fold, from its training part only, so that the held-out images are as new to the
network as a user's will be. Layer 1 is shared by all that is tried in a fold; a forward pass by all powers and all C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from ddlcn.blocks import Branch, Encoding
from ddlcn.choosing import weigh_evenly
from ddlcn.classifier import DDLCNClassifier
from ddlcn.configuration import BranchConfig, override_branches
from ddlcn.descriptors import ConvMap, keep_descriptors
from ddlcn.images import NamedImage
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.pooling import raise_to_power
from ddlcn.svm import decide_by_dual, fit_dual, gram_matrix, pick_class
from ddlcn.utils.labels import check_labels
from ddlcn.utils.progress import track
from ddlcn.utils.sampling import draw_in_proportion
from ddlcn.utils.validation import check_count

Array = NDArray[Any]

# What is tried unless asked otherwise.
CHOICES: dict[str, tuple[Any, ...]] = {
    "n_neighbors": (5, 15),
    "beta": (0.02, 0.05, 0.15),
    "pool_power": (0.5, 1.0),
    "C": (1.0, 3.0, 10.0),
}
# More images are not looked at, every class in proportion: the Gram matrix is solved many times.
MAX_IMAGES = 3000


@dataclass(frozen=True)
class Tried:
    """One combination, and the share of held-out images that it recognised, as mean over classes, fold by fold."""

    parameters: dict[str, Any]
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """Mean over folds."""
        return float(np.mean(self.accuracies))


@dataclass(frozen=True)
class TuningResult:
    """What `tune` found: `best` parameters for `DDLCNClassifier.set_params`, and all that was `tried`, best first."""

    best: dict[str, Any]
    tried: list[Tried]


def tune(
    model: DDLCNClassifier,
    images: Any,
    y: Any,
    choices: Mapping[str, Sequence[Any]] | None = None,
    n_folds: int = 3,
) -> TuningResult:
    """Choose parameters of a classifier on folds of its training images.

    Parameters
    ----------
    model : DDLCNClassifier
        Everything that is not chosen is taken from it; it is not changed. `svm="libsvm"` is tuned as "liblinear",
        and `class_weight` is left aside, since what is maximised is the mean over classes.
    images, y
        As `DDLCNClassifier.fit` takes them; two or more images of every class.
    choices : mapping, optional
        Values to try of any of n_neighbors, beta, pool_power, C; default `CHOICES`. What is missing is not varied.
    n_folds : int, default 3
        Fewer where a class has fewer images.

    Returns
    -------
    TuningResult
        Of equal accuracies the one that was listed first wins.
    """
    choices = dict(CHOICES if choices is None else choices)
    unknown = sorted(set(choices) - set(CHOICES))
    if unknown:
        raise ValueError(f"choices has {unknown[0]!r}: only {', '.join(CHOICES)} can be tuned")
    options = {name: tuple(choices.get(name, (getattr(model, name),))) for name in CHOICES}
    n_folds = check_count("n_folds", n_folds)
    model.configure()
    items = keep_descriptors(images)
    classes, labels = check_labels(y, len(items))
    rng = np.random.default_rng(Seeds.spawn(model.random_state).images)
    kept = draw_in_proportion(labels, MAX_IMAGES, rng)
    smallest = int(np.bincount(labels[kept]).min())
    if smallest < 2:
        rare = classes[np.bincount(labels[kept]).argmin()]
        raise ValueError(f"class {str(rare)!r} has a single image: tuning needs two or more images of every class")
    folds = StratifiedKFold(max(2, min(n_folds, smallest)), shuffle=True, random_state=int(rng.integers(2**31)))
    found: dict[tuple[Any, ...], list[float]] = {values: [] for values in product(*options.values())}
    splits = list(folds.split(kept, labels[kept]))
    for inside, outside in track(splits, len(splits), "tuning, by fold", model.verbose > 0):
        for values, accuracy in _try_fold(model, items, labels, kept[inside], kept[outside], options).items():
            found[values].append(accuracy)
    tried = [Tried(dict(zip(options, values, strict=True)), tuple(scores)) for values, scores in found.items()]
    tried.sort(key=lambda one: -one.accuracy)  # stable: of equals the first stays first
    return TuningResult(tried[0].parameters, tried)


def apply_tuning(model: DDLCNClassifier, parameters: Mapping[str, Any]) -> DDLCNClassifier:
    """A copy of the model with other parameters, the same for every kind of descriptor; not fitted."""
    tuned: DDLCNClassifier = clone(model)
    features = override_branches(tuned.features, tuple(parameters))
    tuned.set_params(features=features, **parameters)
    return tuned


def _try_fold(
    model: DDLCNClassifier,
    items: Sequence[NamedImage],
    labels: NDArray[np.intp],
    inside: NDArray[np.intp],
    outside: NDArray[np.intp],
    options: Mapping[str, tuple[Any, ...]],
) -> dict[tuple[Any, ...], float]:
    """Accuracy, mean over classes, of every combination on one fold."""
    n_jobs, n_classes, n = model.n_jobs, int(labels.max()) + 1, len(inside)
    everyone = [items[i] for i in np.concatenate([inside, outside])]
    training = TrainingImages(everyone[:n], labels[inside], np.arange(n_classes))
    earlier: Sequence[Branch | None] = [None] * len(model.configure().branches)
    results = {}
    passes = options["pool_power"] if _needs_passes(model.configure().branches) else (1.0,)
    for k, beta, pool_power in product(options["n_neighbors"], options["beta"], passes):
        config = apply_tuning(model, {"n_neighbors": k, "beta": beta, "pool_power": pool_power}).configure()
        seeds = Seeds.spawn(model.random_state)
        branches = [
            learn_branch(own, training, seeds, n_jobs, earlier=old)
            for own, old in zip(config.branches, earlier, strict=True)
        ]
        earlier = branches
        pooled = Encoding(branches, model.configure().weights or weigh_evenly(len(branches))).transform(
            everyone, n_jobs
        )
        for power in (pool_power,) if len(passes) > 1 else options["pool_power"]:
            gram = gram_matrix(pooled if power == pool_power else raise_to_power(pooled, power))
            for C in options["C"]:
                dual = fit_dual(gram[:n, :n], labels[inside], n_classes, C, np.ones(n_classes), n_jobs)
                y_pred = pick_class(decide_by_dual(gram[n:, :n], dual))
                results[k, beta, power, C] = float(balanced_accuracy_score(labels[outside], y_pred))
    return results


def _needs_passes(branches: Sequence[BranchConfig]) -> bool:
    """Whether every pooling power needs a forward pass of its own.

    Weights are not raised to the power, and those of augmented layers depend on it.
    """
    return len(branches) > 1 or any(
        (own.depth == "augment" and own.n_layers > 1)
        or own.layer_weights is not None
        or own.first_order > 0
        or isinstance(own.descriptors, ConvMap)
        for own in branches
    )
