"""Whether joint training helps, and how long to train: chosen on held-out training images, never on others.

Few images overfit. Dictionaries and SVM are learned anew from two thirds of the training images, then trained together;
the other third says whether that recognises more. A short training is tried first, then a longer one, and a stronger
hold on reconstruction. Only what is surely better than frozen dictionaries is done to the network itself.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from ddlcn.blocks import Branch, Encoding
from ddlcn.joint.objective import HingeLoss
from ddlcn.joint.progress import UNWATCHED, JointProgress
from ddlcn.joint.training import Epoch, JointConfig, JointTraining
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.svm import KeptFeatures, LinearSVM, SVMConfig, pick_class, train
from ddlcn.utils.progress import say
from ddlcn.utils.sampling import draw_per_class
from ddlcn.utils.statistics import is_surely_better

Array = NDArray[Any]

# What is tried, one after the other, as long as each is ahead of the one before. Chosen on MNIST's training images
# (docs/joint.md): steps of 1 to 5 % and mu of 0.1 to 10 lie within half a point of each other.
CANDIDATES = (JointConfig(10, mu=1.0), JointConfig(30, mu=1.0), JointConfig(30, mu=10.0))
# Images that candidates are tried on, at most, and the share of them that is held out.
MAX_IMAGES, HELD_OUT = 2000, 1 / 3
# Atoms of a dictionary that are shown, before and after.
N_SHOWN = 6


class JointResult(NamedTuple):
    """What joint training made of a network.

    Attributes
    ----------
    branches : list of Branch
        The same as before where folds say that it does not help.
    why : str
        One line, for people.
    history : list of Epoch
    atoms : list of (before, after)
        Of every dictionary of the first kind of descriptor: the few atoms (n, m) that moved farthest.
    """

    branches: list[Branch]
    why: str
    history: list[Epoch]
    atoms: list[tuple[Array, Array]]

    @property
    def card(self) -> dict[str, Any]:
        """What is known about it later: why, [classification error, reconstruction error] by epoch, some atoms."""
        epochs = [[round(e.classification_error, 6), round(e.reconstruction_error, 6)] for e in self.history]
        atoms = [[part.round(3).tolist() for part in pair] for pair in self.atoms]
        return {"joint": self.why, "joint_epochs": epochs, "joint_atoms": atoms}


def train_jointly(
    encoding: Encoding,
    svm: LinearSVM,
    config: SVMConfig,
    training: TrainingImages,
    seeds: Seeds,
    vary: float = 0.0,
    n_jobs: int | None = None,
    show: bool = False,
    progress: JointProgress = UNWATCHED,
) -> JointResult:
    """Train atoms and SVM together, if that helps.

    Parameters
    ----------
    encoding : Encoding
    svm : LinearSVM; config : SVMConfig
        Fitted to its features, and how.
    training : TrainingImages
    seeds : Seeds
        Copied: they can be used again.
    vary : float
        As of `JointConfig`.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    show : bool
        Whether to print a line for every epoch, where nobody else hears of them.
    progress : JointProgress
        Hears of every epoch, and keeps it.
    """
    if show and progress is UNWATCHED:
        progress = JointProgress(tell=say)
    chosen, why = choose(encoding, config, training, seeds, vary, n_jobs, progress)
    if chosen is None:
        return JointResult(list(encoding.branches), why, [], [])
    loss = HingeLoss.prepare(training.labels, config)
    network = (encoding.branches, encoding.weights, svm, training.items, loss)
    final = JointTraining(*network, chosen, copy.deepcopy(seeds.joint), n_jobs)
    names = [item.name for item in training.items]
    branches = _run(final, chosen, names, progress, "joint training")
    pairs = zip(encoding.branches[0].dictionaries, branches[0].dictionaries, strict=True)
    return JointResult(branches, why, final.history, [_pick_moved(*pair) for pair in pairs])


def _pick_moved(before: Array, after: Array) -> tuple[Array, Array]:
    """Of two versions of a dictionary (atoms, m), those atoms that differ most."""
    moved = np.argsort(-np.linalg.norm(after - before, axis=1), kind="stable")[:N_SHOWN]
    return before[moved], after[moved]


def _run(
    training: JointTraining, config: JointConfig, names: Sequence[str], progress: JointProgress, what: str
) -> list[Branch]:
    """All epochs, told and kept."""

    def tell(epoch: Epoch) -> None:
        left = (config.epochs - epoch.number) * epoch.seconds
        progress.tell(
            f"{what}, epoch {epoch.number} of {config.epochs}: classification error {epoch.classification_error:.4f}, "
            f"reconstruction error {epoch.reconstruction_error:.4f}, {left:.0f} s left"
        )

    return training.run(tell, progress.open([*training.list_start(), names]))


def choose(
    encoding: Encoding,
    config: SVMConfig,
    training: TrainingImages,
    seeds: Seeds,
    vary: float,
    n_jobs: int | None,
    progress: JointProgress = UNWATCHED,
) -> tuple[JointConfig | None, str]:
    """The candidate that recognises most held-out training images, and why; None: frozen dictionaries."""
    labels, n_classes = training.labels, config.n_classes
    if np.bincount(labels).min() < 3:
        return None, "frozen dictionaries: a class has fewer than three images, so nothing can be held out"
    seeds = copy.deepcopy(seeds)
    rng = np.random.default_rng(seeds.joint)
    some = draw_per_class(labels, max(3, MAX_IMAGES // n_classes), rng)
    split = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=int(rng.integers(2**31)))
    inside, outside = (some[part] for part in next(split.split(some, labels[some])))
    own = TrainingImages([training.items[i] for i in inside.tolist()], labels[inside], training.classes)
    names = [item.name for item in own.items]
    held_out, y_true = [training.items[i] for i in outside.tolist()], labels[outside]
    configs = [
        replace(each.config, descriptors=clone(each.config.descriptors, safe=False)) for each in encoding.branches
    ]
    frozen = [learn_branch(each, own, copy.deepcopy(seeds), n_jobs) for each in configs]
    loss = HingeLoss.prepare(own.labels, config)

    def fit(branches: Sequence[Branch]) -> tuple[LinearSVM, NDArray[np.bool_]]:
        """The SVM on branches learned inside, and which of the held-out images it recognises."""
        network = Encoding(branches, encoding.weights)
        rows = KeptFeatures(network.transform(own.items, n_jobs), own.labels)
        svm = train(rows, own.labels, config, n_jobs).svm
        return svm, pick_class(svm.decide(network.transform(held_out, n_jobs))) == y_true

    svm, reference = fit(frozen)
    best, best_right, found = None, reference, [f"frozen {100 * reference.mean():.1f} %"]
    for candidate in CANDIDATES:
        candidate = replace(candidate, vary=vary)
        network = (frozen, encoding.weights, svm, own.items, loss)
        trial = JointTraining(*network, candidate, copy.deepcopy(seeds.joint), n_jobs)
        branches = _run(trial, candidate, names, progress, f"trying {candidate.epochs} epochs, mu {candidate.mu:g}")
        _, right = fit(branches)
        found.append(f"{candidate.epochs} epochs, mu {candidate.mu:g}: {100 * right.mean():.1f} %")
        if right.sum() <= best_right.sum():
            break
        best, best_right = candidate, right
    on = f"on {len(outside)} held-out training images: {'; '.join(found)}"
    if best is None or not is_surely_better(best_right, reference):
        return None, f"frozen dictionaries, joint training was not clearly ahead {on}"
    return best, f"joint training, {best.epochs} epochs, mu {best.mu:g}, ahead {on}"
