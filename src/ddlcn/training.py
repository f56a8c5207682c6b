"""From a person's pictures to a model and an honest figure: what to hold out, what that shows, and the final fit.

Held-out images are new to everything, dictionaries included; near-duplicates are never on both sides. Every finished
part is written down, so that a killed training goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold

from ddlcn import __version__
from ddlcn.classifier import DDLCNClassifier
from ddlcn.evaluation import Findings
from ddlcn.features import ConvMap, name_images, resolve_all_features
from ddlcn.features.pretrained import has_networks
from ddlcn.features.resolve import ONNX
from ddlcn.network import ImageFeatures
from ddlcn.presets import get_preset
from ddlcn.svm.route import BYTES_PER_NONZERO

Array = NDArray[Any]
Say = Callable[[str], None]

# Above this many images one fold of four is held out, and no other: the figure is sure enough, and folds take long.
MAX_CROSS_VALIDATED = 2000
N_FOLDS = 3
HELD_OUT = 4  # one in so many
# Descriptors are chosen on so many images at most, in so many folds.
MAX_CHOSEN_BY, N_CHOICE_FOLDS = 600, 2
# Features of the training images are kept in the model file, so that it can learn more, if they take no more than this.
MAX_KEPT_BYTES = 100_000_000


@dataclass(frozen=True)
class Split:
    """What is learned from and what is tested: indices into the images."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def plan_splits(
    labels: Array, groups: NDArray[np.intp], n_per_class: int | None, one_only: bool, seed: int
) -> tuple[list[Split], str]:
    """Which images are held out, and how that is called; no split where nothing can be.

    Parameters
    ----------
    labels : ndarray (n,)
    groups : ndarray (n,)
        Images of one group are never on both sides.
    n_per_class : int or None
        Learn from so many images of every class and test the rest; None: folds.
    one_only : bool
        Whether a single split is wanted in any case.
    seed : int
    """
    rng = np.random.default_rng(seed)
    if n_per_class is not None:
        train = np.sort(
            np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:n_per_class] for c in np.unique(labels)])
        )
        test = np.setdiff1d(np.flatnonzero(~np.isin(groups, groups[train])), train)
        if len(test) == 0:
            return [], f"no image was left to test beside {n_per_class} per class"
        return [Split(train, test)], f"all but {n_per_class} images per class held out"
    groups_per_class = min(len(set(groups[labels == c].tolist())) for c in np.unique(labels))
    if groups_per_class < 2:
        return [], "no image could be held out: a class has a single picture"
    one_only = one_only or len(labels) > MAX_CROSS_VALIDATED
    n_folds = min(HELD_OUT if one_only else N_FOLDS, groups_per_class)
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    splits = [Split(train, test) for train, test in folds.split(labels, labels, groups)]
    if one_only:
        return splits[:1], f"{len(splits[0].test)} of {len(labels)} images held out"
    return splits, f"{n_folds}-fold cross-validation"


def prepare_models(preset: str, n_layers: int | None, features: str, **changes: Any) -> dict[str, DDLCNClassifier]:
    """The classifiers that a person's words mean, by the name of their descriptors: one, or with "auto" several.

    Parameters
    ----------
    preset : str
    n_layers : int or None
        None: the preset's.
    features : str
        "sift", "cnn", "onnx:FILE", some of these with "+" between, or "auto": "sift" and, where its packages are
        installed, "cnn".
    **changes
        Of the classifier's parameters.
    """
    names = [features]
    if features == "auto":
        names = ["sift", *(["cnn"] if has_networks() else [])]
    models = {}
    for name in names:
        kinds: Any = name.split("+") if "+" in name and not name.startswith(ONNX) else name
        models[name] = DDLCNClassifier(**{**get_preset(preset, n_layers, kinds), **changes})
        models[name]._check_parameters()
        for each in resolve_all_features(kinds):
            if isinstance(each, ConvMap):
                each.check_network()
    return models


class Progress:
    """What is finished of a training, in a file beside the model; gone when the model is written.

    Parameters
    ----------
    path : Path
    key : str
        What the training depends on; a file with another key is not gone on with.
    resume : bool
        Whether to go on with what is there.
    """

    def __init__(self, path: Path, key: str, resume: bool) -> None:
        self._path = path
        self._state: dict[str, Any] = {"key": key, "done": {}}
        if not resume or not path.exists():
            return
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if state.get("key") != key:
            raise ValueError(
                f"{path} belongs to a training with other images or settings: say them again, or leave --resume out"
            )
        self._state = state

    def recall(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of that name from before the interruption, or made now and written down (JSON)."""
        done = self._state["done"]
        if name not in done:
            done[name] = make()
            beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            beside.write_text(json.dumps(self._state), encoding="utf-8")
            os.replace(beside, self._path)
        return done[name]

    def finish(self) -> None:
        self._path.unlink(missing_ok=True)


@dataclass
class Job:
    """One training: pictures, settings, where it is written.

    Attributes
    ----------
    model : DDLCNClassifier
        Not fitted; its `random_state` is the seed of everything.
    paths : sequence of n paths; labels : ndarray (n,); groups : ndarray (n,)
    goal : Path
        The model file.
    n_per_class : int or None
    tune : bool
        Whether to choose k, beta, pooling power and C on folds of the training images first.
    resume : bool
    keep_patches : bool
        Whether the model file holds patches of training images, for explanations.
    say : function of a line of text
        Told what is being done.
    chosen : dict
        What tuning has chosen, after `run`.
    candidates : dict of DDLCNClassifier
        With other descriptors than `model`, by their names: of two or more the best on folds of the training images is
        taken instead of `model`.
    """

    model: DDLCNClassifier
    paths: Sequence[Path]
    labels: Array
    groups: NDArray[np.intp]
    goal: Path
    n_per_class: int | None = None
    tune: bool = False
    resume: bool = False
    keep_patches: bool = False
    say: Say = field(default=lambda _: None)
    chosen: dict[str, Any] = field(default_factory=dict)
    candidates: dict[str, DDLCNClassifier] = field(default_factory=dict)

    def run(self) -> tuple[DDLCNClassifier, Findings | None]:
        """Hold out, learn, test; then learn from all (or from `n_per_class`) and save: the model, and the findings."""
        begin = time.perf_counter()
        seed = int(self.model.random_state)
        progress = Progress(self.goal.with_name(f"{self.goal.name}.part"), self._make_key(), self.resume)
        choosing = len(self.candidates) > 1
        splits, how = plan_splits(self.labels, self.groups, self.n_per_class, self.tune or choosing, seed)
        model = self._choose(splits, progress, seed) if choosing else self.model
        model = self._tune(model, splits, progress) if self.tune else model
        winners: list[Any] = []
        for i, split in enumerate(splits):
            self.say(f"learning from {len(split.train)}, testing {len(split.test)} ({i + 1} of {len(splits)})")
            winners += progress.recall(f"fold{i}", lambda split=split: self._test(model, split))  # type: ignore[misc]
        tested = np.concatenate([split.test for split in splits]) if splits else np.array([], np.intp)
        findings = Findings(how, self.labels[tested], np.array(winners)) if len(tested) else None
        chosen = splits[0].train if self.n_per_class is not None and splits else np.arange(len(self.paths))
        self.say(f"learning from {len(chosen)} images")
        images = [self.paths[i] for i in chosen]
        final = clone(model).fit(images, self.labels[chosen])
        sizes = ImageFeatures(final._get_network(), list(name_images(images)), self.model.n_jobs, show=False)
        if BYTES_PER_NONZERO * sizes.estimate_nonzeros() <= MAX_KEPT_BYTES:
            self.say("keeping their features, so that more can be learned later")
            final.keep_features(images, self.labels[chosen])
        if self.keep_patches:
            self.say("looking for the patches nearest to the atoms")
            final.keep_patches(images, self.labels[chosen])
        final.card_ |= {"version": __version__, "trained_in_seconds": round(time.perf_counter() - begin, 1), "how": how}
        if findings is not None:
            low, high = findings.interval
            final.card_ |= {
                "accuracy": findings.accuracy, "interval": [low, high], "tested": len(tested),
                "mean_over_classes": findings.mean_over_classes,
            }  # fmt: skip
        final.save(self.goal)
        progress.finish()
        return final, findings

    def _test(self, model: DDLCNClassifier, split: Split) -> list[Any]:
        fitted = clone(model).fit([self.paths[i] for i in split.train], self.labels[split.train])
        return list(fitted.predict([self.paths[i] for i in split.test]).tolist())

    def _choose(self, splits: list[Split], progress: Progress, seed: int) -> DDLCNClassifier:
        """The candidate that recognises most on folds; held-out images are not looked at for that."""
        pool = splits[0].train if splits else np.arange(len(self.paths))
        rng = np.random.default_rng(seed)
        n_each = max(2, MAX_CHOSEN_BY // len(np.unique(self.labels)))
        labels = self.labels[pool]
        few = np.concatenate([rng.permutation(pool[labels == c])[:n_each] for c in np.unique(labels)])
        fewest = min(len(set(self.groups[few][self.labels[few] == c].tolist())) for c in np.unique(labels))
        if fewest < 2:
            self.say("a class has a single image: descriptors cannot be chosen on folds, so the first are taken")
            return self.model
        folds = StratifiedGroupKFold(min(N_CHOICE_FOLDS, fewest), shuffle=True, random_state=seed)
        parts = [Split(few[a], few[b]) for a, b in folds.split(few, self.labels[few], self.groups[few])]
        rates = {}
        for name, candidate in self.candidates.items():
            self.say(f"trying descriptors {name!r} on folds of {len(few)} images")

            def test(candidate: DDLCNClassifier = candidate) -> list[list[Any]]:
                return [self._test(candidate, part) for part in parts]

            winners = progress.recall(f"tried-{name}", test)
            right = [self.labels[p.test] == np.array(w) for p, w in zip(parts, winners, strict=True)]
            rates[name] = float(np.concatenate(right).mean())
        best = max(rates, key=lambda name: rates[name])
        told = ", ".join(f"{name} {100 * rate:.1f} %" for name, rate in rates.items())
        self.chosen["features"] = f"{best} ({told})"
        return self.candidates[best]

    def _tune(self, model: DDLCNClassifier, splits: list[Split], progress: Progress) -> DDLCNClassifier:
        """The model with the best settings; held-out images are not looked at for that."""
        from ddlcn.tuning import tune

        chosen = splits[0].train if splits else np.arange(len(self.paths))
        self.say(f"choosing k, beta, pooling power and C on folds of {len(chosen)} images")
        images = [self.paths[i] for i in chosen]
        best = progress.recall("tuned", lambda: tune(model, images, self.labels[chosen]).best)
        self.chosen |= best
        tuned: DDLCNClassifier = clone(model).set_params(**best)
        return tuned

    def _make_key(self) -> str:
        # What changes the model; not how many threads make it, nor whether they show progress.
        settings = {k: v for k, v in self.model.get_params().items() if k not in ("n_jobs", "verbose")}
        parts = (
            __version__, [str(path) for path in self.paths], self.labels.tolist(), self.n_per_class, self.tune,
            repr(settings), list(self.candidates),
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
