"""From a person's pictures to a model and an honest figure: what to hold out, what that shows, and the final fit.

Held-out images are new to everything, dictionaries included; near-duplicates are never on both sides. Every picture is
described once, for all folds and the final fit. Every finished part is written down, so that a killed training
continues where it was.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ddlcn import __version__
from ddlcn.choosing import choose_recipe, make_recipe
from ddlcn.classifier import DDLCNClassifier
from ddlcn.descriptors import ConvMap, describe_ahead, keep_descriptors, keep_pixels
from ddlcn.descriptors.resolve import ONNX
from ddlcn.images import NamedImage
from ddlcn.joint import JointProgress, forget
from ddlcn.learning import Seeds, TrainingImages
from ddlcn.model_selection.metrics import TestResult
from ddlcn.model_selection.splits import Split, plan_splits
from ddlcn.model_selection.tuning import apply_tuning, tune
from ddlcn.presets import PARAMETERS, list_recipes
from ddlcn.utils.progress import track
from ddlcn.utils.threads import count_threads, map_threads
from ddlcn.workflows.checkpoint import Checkpoint
from ddlcn.workflows.learned_from import digest_files

Array = NDArray[Any]

# Features of the training images are kept in the model file, so that it can learn more, if they take no more than this.
MAX_KEPT_BYTES = 100_000_000


def prepare_model(preset: str, n_layers: int | None, features: str, **changes: Any) -> DDLCNClassifier:
    """The classifier that a person's words mean.

    Parameters
    ----------
    preset : str
        "": "auto", or "fast" where something is given that "auto" chooses itself.
    n_layers : int or None
        None: the preset's.
    features : str
        "sift", "cnn", "onnx:FILE", some of these with "+" between, or "": the preset's. "auto" means preset "auto", and
        "sift" with "auto" leaves out the backbone.
    **changes
        Of the classifier's parameters.
    """
    if not preset:
        is_free = features in ("", "auto", "sift") and n_layers is None and not set(changes) & set(PARAMETERS)
        preset = "auto" if is_free else "fast"
    if "auto" in (preset, features):
        if features == "sift":
            changes, features = {"recipes": list_recipes(backbone=False), **changes}, ""
        return DDLCNClassifier.preset("auto", None if features == "auto" else features or None, n_layers, **changes)
    kinds: Any = features.split("+") if "+" in features and not features.startswith(ONNX) else features or None
    model = DDLCNClassifier.preset(preset, kinds, n_layers, **changes)
    for branch in model.configure().branches:
        if isinstance(branch.descriptors, ConvMap):
            branch.descriptors.check_network()
    return model


def choose_for(
    model: DDLCNClassifier, items: Sequence[NamedImage], labels: Array, groups: NDArray[np.intp]
) -> tuple[str, str]:
    """The name of the recipe, of those of a model, that suits some images (of near-duplicates one), and why."""
    one = np.sort(np.unique(groups, return_index=True)[1])
    classes, indices = np.unique(labels[one], return_inverse=True)
    training = TrainingImages([items[i] for i in one.tolist()], indices, classes)
    parameters = model.get_params(deep=False)
    choice = choose_recipe(model.recipes, parameters, training, Seeds.spawn(model.random_state), model.n_jobs)
    return choice.recipe.name, choice.why


def take_recipe(model: DDLCNClassifier, name: str) -> DDLCNClassifier:
    """The model with the settings of one recipe, not fitted."""
    recipe = make_recipe(name, model.get_params(deep=False))
    chosen: DDLCNClassifier = clone(model).set_params(recipes=(), **recipe.parameters)
    return chosen


@dataclass
class Training:
    """One training: pictures, settings, where it is written.

    Attributes
    ----------
    model : DDLCNClassifier
        Not fitted; its `random_state` is the seed of everything. Of one with `recipes`, every fit chooses its own, on
        the images that it learns from.
    paths : sequence of n paths; labels : ndarray (n,); groups : ndarray (n,)
    goal : Path
        The model file.
    n_per_class : int or None
        Learn from this many images of every class and test the others; None: folds.
    tune : bool
        Whether to choose k, beta, pooling power and C on folds of the training images first.
    resume : bool
    say : function of a line of text
        Told what is being done.
    chosen : dict
        Settings that were tuned, after `run`.
    recipe : str
        Which recipe was chosen, and why, after `run`; "" if there was no choice.
    """

    model: DDLCNClassifier
    paths: Sequence[Path]
    labels: Array
    groups: NDArray[np.intp]
    goal: Path
    n_per_class: int | None = None
    tune: bool = False
    resume: bool = False
    say: Callable[[str], None] = field(default=lambda _: None)
    chosen: dict[str, Any] = field(default_factory=dict)
    recipe: str = ""

    def run(self) -> tuple[DDLCNClassifier, TestResult | None]:
        """Hold out, learn, test; then learn from all (or from `n_per_class`) and save: the model, and the figures."""
        begin = time.perf_counter()
        self._items = keep_descriptors(self.paths)
        model = self.model
        checkpoint = Checkpoint(self.goal.with_name(f"{self.goal.name}.part"), self._make_key(), self.resume)
        self._epochs = self.goal.with_name(f"{self.goal.name}.epochs")  # of joint trainings, by what they start from
        if not self.resume:
            forget(self._epochs)
        seed = int(model.random_state)
        splits, description = plan_splits(self.labels, self.groups, self.n_per_class, self.tune, seed)
        if self.tune:
            pool = splits[0].train if splits else np.arange(len(self.paths))
            model, self.recipe = self._choose(model, pool, "recipe", checkpoint)
        if model.recipes:
            self.say(f"every fit chooses among {', '.join(model.recipes)}, on the images that it learns from")
        else:
            self._describe(model)
        model = self._tune(model, splits, checkpoint) if self.tune else model
        final, result = self._learn(model, splits, description, checkpoint)
        if final.kept_ is not None and final.kept_.nbytes > MAX_KEPT_BYTES:
            final.kept_ = None
        seconds = round(time.perf_counter() - begin, 1)
        final.card_ |= {"version": __version__, "trained_in_seconds": seconds, "how": description}
        if self.recipe:
            final.card_["chosen"] = self.recipe
        if result is not None:
            final.card_ |= {
                "accuracy": result.accuracy, "interval": list(result.interval), "tested": len(result.y_true),
                "balanced_accuracy": result.balanced_accuracy,
            }  # fmt: skip
        final.save(self.goal)
        checkpoint.finish()
        forget(self._epochs)
        return final, result

    def _take(self, chosen: NDArray[np.intp]) -> list[NamedImage]:
        return [self._items[i] for i in chosen.tolist()]

    def _describe(self, model: DDLCNClassifier) -> None:
        """Describe all pictures, with all threads, for everything that follows."""
        self.say(f"describing {len(self._items)} images")
        branches = model.configure().branches
        if model.copies or len(branches) > 1:
            keep_pixels(self._items)
        for branch in branches:
            if hasattr(branch.descriptors, "extract"):
                described = describe_ahead(branch.descriptors, self._items, model.n_jobs)
                for _ in track(described, len(self._items), "describing images", model.verbose > 0):
                    pass

    def _learn(
        self, model: DDLCNClassifier, splits: list[Split], description: str, checkpoint: Checkpoint
    ) -> tuple[DDLCNClassifier, TestResult | None]:
        """The final fit, and what held-out images are predicted as, split by split; None where nothing is held out.

        Fits are independent, so several run side by side, each with its share of the threads; the longest first.
        """
        chosen = splits[0].train if self.n_per_class is not None and splits else np.arange(len(self.paths))
        n_threads = count_threads(model.n_jobs)
        n_fits = min(len(splits) + 1, n_threads)
        quiet = {"n_jobs": n_threads // n_fits, "verbose": 0} if n_fits > 1 else {}
        shown = f"learning, {len(splits)} times to test and once for the model" if splits else "learning"
        self.say(f"{shown} from {len(chosen)} images")

        def test(i: int) -> Any:
            return checkpoint.recall(f"fold{i}", lambda: self._test(clone(model).set_params(**quiet), splits[i]))

        def fit() -> Any:
            final, why = self._choose(clone(model).set_params(**quiet), chosen, "recipe", checkpoint)
            self.recipe = why or self.recipe
            final.set_params(keep_features=True)
            final.learn(*final.prepare(self._take(chosen), self.labels[chosen]), JointProgress(self._epochs, self.say))
            final.calibrator_.find(final.n_jobs)
            final.card_["files"] = digest_files([self.paths[i] for i in chosen.tolist()], final.n_jobs)
            return final

        tasks: list[Callable[[], Any]] = [fit, *(partial(test, i) for i in range(len(splits)))]
        done = map_threads(lambda task: task(), tasks, n_fits)
        show = bool(quiet) and model.verbose > 0
        final, *tested = track(done, len(tasks), "learning", show)
        final.set_params(n_jobs=model.n_jobs, verbose=model.verbose)
        if not splits:
            return final, None
        y_true = np.concatenate([self.labels[split.test] for split in splits])
        return final, TestResult(description, y_true, np.concatenate([np.array(y_pred) for y_pred in tested]))

    def _test(self, model: DDLCNClassifier, split: Split) -> list[Any]:
        model, _ = self._choose(model, split.train)
        fitted = clone(model).set_params(keep_patches=False)
        fitted.learn(*fitted.prepare(self._take(split.train), self.labels[split.train]), JointProgress(self._epochs))
        return list(fitted.predict(self._take(split.test)).tolist())

    def _choose(
        self, model: DDLCNClassifier, pool: NDArray[np.intp], part: str = "", checkpoint: Checkpoint | None = None
    ) -> tuple[DDLCNClassifier, str]:
        """The model with the recipe that suits some images, of near-duplicates one, and why; itself if it has none."""
        if not model.recipes:
            return model, ""

        def choose() -> list[str]:
            return list(choose_for(model, self._take(pool), self.labels[pool], self.groups[pool]))

        name, why = choose() if checkpoint is None else checkpoint.recall(part, choose)
        return take_recipe(model, name), why

    def _tune(self, model: DDLCNClassifier, splits: list[Split], checkpoint: Checkpoint) -> DDLCNClassifier:
        """The model with the best settings on folds of training images."""
        train = splits[0].train if splits else np.arange(len(self.paths))
        self.say(f"choosing k, beta, pooling power and C on folds of {len(train)} images")
        best = checkpoint.recall("tuned", lambda: tune(model, self._take(train), self.labels[train]).best)
        self.chosen |= best
        return apply_tuning(model, best)

    def _make_key(self) -> str:
        # What changes the model; not how many threads make it, nor whether they show progress.
        settings = sorted((k, repr(v)) for k, v in self.model.get_params().items() if k not in ("n_jobs", "verbose"))
        parts = (__version__, list(map(str, self.paths)), self.labels.tolist(), self.n_per_class, self.tune, settings)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
