"""Whether joint training helps, and how long to train: chosen on held-out training images, never on others.

Few images overfit. Dictionaries and SVM are learned anew from two thirds of the training images, then trained together;
the other third says whether that recognises more. A short training is tried first; if it is better by more than an
image or two, then a longer one, and a stronger hold on reconstruction. Only what is surely better than frozen
dictionaries is done to the network itself.

After it the SVM is solved exactly once more, on the images as they are. An SVM that was trained on images bent anew in
every epoch has seen more than those, and often recognises more; so there the held-out images also choose between both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from ddlcn.blocks import Branch, EncodedImages, Encoding
from ddlcn.images import NamedImage
from ddlcn.images.copies import TURNED, add_copies, count_copies
from ddlcn.joint.objective import HingeLoss
from ddlcn.joint.progress import UNWATCHED, JointProgress, KeptState
from ddlcn.joint.training import Epoch, JointConfig, JointTraining
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.svm import LinearSVM, SVMConfig, pick_class, train
from ddlcn.utils.progress import say
from ddlcn.utils.sampling import draw_per_class
from ddlcn.utils.statistics import is_surely_better

Array = NDArray[Any]

# What is tried, one after the other, as long as each is ahead of the one before, and of frozen dictionaries by more
# than an image or two: as chance would have it with less than 25 %. Chosen on MNIST's training images (docs/joint.md):
# steps of 1 to 5 % and mu of 0.1 to 10 lie within half a point of each other.
HOPE = 0.75
CANDIDATES = (JointConfig(10, mu=1.0), JointConfig(30, mu=1.0), JointConfig(30, mu=10.0))
# Of at most so many images a third is held out: telling a gain of 0.2 points from chance takes 20,000 (with 5,000, one
# on MNIST was missed). As many of the others as below are learned from, a fraction of the training itself.
MAX_IMAGES, HELD_OUT, MAX_LEARNED = 60_000, 1 / 3, 4000
# In place of True: images are slightly bent in every epoch, half as much as virtual copies are. With 4,000 of MNIST's
# training images and 100 atoms 98.5 %, bent fully 98.4 %, not at all 98.4 %.
VARIED, HALF = "varied", 0.5
# Atoms of a dictionary that are shown, before and after.
N_SHOWN = 6


class JointResult(NamedTuple):
    """What joint training made of a network.

    Attributes
    ----------
    branches : list of Branch
        The same as before where folds say that it does not help.
    svm : LinearSVM or None
        The one trained with the atoms, if it is to stay; None: to be solved once more where there was an epoch.
    why : str
        One line, for people.
    history : list of Epoch
    atoms : list of (before, after)
        Of every dictionary of the first kind of descriptor: the few atoms (n, m) that moved farthest.
    """

    branches: list[Branch]
    svm: LinearSVM | None
    why: str
    history: list[Epoch]
    atoms: list[tuple[Array, Array]]

    @property
    def card(self) -> dict[str, Any]:
        """What is known about it later: why, [classification error, reconstruction error] by epoch, some atoms."""
        epochs = [[round(e.classification_error, 6), round(e.reconstruction_error, 6)] for e in self.history]
        atoms = [[part.round(3).tolist() for part in pair] for pair in self.atoms]
        return {"joint": self.why, "joint_epochs": epochs, "joint_atoms": atoms}


class Choice(NamedTuple):
    """What the trial says.

    Attributes
    ----------
    config : JointConfig or None
        How to train; None: frozen dictionaries.
    why : str
        One line, for people.
    keeps_svm : bool
        Whether the SVM that was trained with the atoms stays; False: it is solved once more.
    """

    config: JointConfig | None
    why: str
    keeps_svm: bool = False


def train_jointly(
    encoding: Encoding,
    svm: LinearSVM,
    config: SVMConfig,
    training: TrainingImages,
    seeds: Seeds,
    copies: int | str = 0,
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
    copies : int or "turned"
        Of every training image, that the SVM also learns from.
    vary : float
        As of `JointConfig`; not where images are turned.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    show : bool
        Whether to print a line for every epoch, where nobody else hears of them.
    progress : JointProgress
        Hears of every epoch, and keeps it.
    """
    if show and progress is UNWATCHED:
        progress = JointProgress(tell=say)
    chosen = choose(encoding, config, training, seeds, copies, vary, n_jobs, progress)
    if chosen.config is None:
        return JointResult(list(encoding.branches), None, chosen.why, [], [])
    final = _prepare(encoding, svm, config, training, seeds, copies, chosen.config, n_jobs)
    branches = final.run(*_watch(final, training, progress, "joint training"))
    pairs = zip(encoding.branches[0].dictionaries, branches[0].dictionaries, strict=True)
    moved = [_pick_moved(*pair) for pair in pairs]
    return JointResult(branches, final.make_svm() if chosen.keeps_svm else None, chosen.why, final.history, moved)


def check_joint(joint: Any, svm: str) -> None:
    """Whether the classifier's parameters make sense, before any image is read."""
    if not isinstance(joint, bool) and joint != VARIED:
        raise ValueError(f'joint must be True, False or "{VARIED}"; got {joint!r}')
    if joint and svm != "liblinear":
        raise ValueError('joint training needs svm="liblinear": one row of weights per class')


def choose_strength(joint: bool | str, copies: int | str) -> float:
    """How much images are bent, as of `JointConfig`: like the copies that the SVM sees; or as somebody asks."""
    return HALF if joint == VARIED else float(copies not in (0, TURNED))


def _pick_moved(before: Array, after: Array) -> tuple[Array, Array]:
    """Of two versions of a dictionary (atoms, m), those atoms that differ most."""
    moved = np.argsort(-np.linalg.norm(after - before, axis=1), kind="stable")[:N_SHOWN]
    return before[moved], after[moved]


def _prepare(
    encoding: Encoding,
    svm: LinearSVM,
    config: SVMConfig,
    training: TrainingImages,
    seeds: Seeds,
    copies: int | str,
    candidate: JointConfig,
    n_jobs: int | None,
) -> JointTraining:
    """Joint training on what the SVM learns from; in place of bent copies, images are bent anew in every epoch."""
    is_turned = copies == TURNED
    training = _add_copies(training, copies, seeds) if is_turned else training
    loss = HingeLoss.prepare(training.labels, config, 0 if is_turned else count_copies(copies))
    network = (encoding.branches, encoding.weights, svm, training.items, loss)
    return JointTraining(*network, candidate, copy.deepcopy(seeds.joint), n_jobs)


def _add_copies(training: TrainingImages, copies: int | str, seeds: Seeds) -> TrainingImages:
    """Images and their copies, as the SVM sees them."""
    items = add_copies(training.items, copies, copy.deepcopy(seeds).copies)
    return TrainingImages(items, np.repeat(training.labels, 1 + count_copies(copies)), training.classes)


def _watch(
    joint: JointTraining, training: TrainingImages, progress: JointProgress, what: str
) -> tuple[Callable[[Epoch], None], KeptState]:
    """Who hears of every epoch, and where it is kept."""
    n_epochs = joint.config.epochs

    def tell(epoch: Epoch) -> None:
        left = (n_epochs - epoch.number) * epoch.seconds
        progress.tell(
            f"{what}, epoch {epoch.number} of {n_epochs}: classification error {epoch.classification_error:.4f}, "
            f"reconstruction error {epoch.reconstruction_error:.4f}, {left:.0f} s left"
        )

    return tell, progress.open([*joint.list_start(), [item.name for item in training.items]])


def hold_out(labels: NDArray[np.intp], rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Images to learn from in the trial, and images to judge it by; three or more of every class in `labels`."""
    n_classes = len(np.unique(labels))
    some = draw_per_class(labels, max(3, MAX_IMAGES // n_classes), rng)
    split = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=int(rng.integers(2**31)))
    inside, outside = (some[part] for part in next(split.split(some, labels[some])))
    if len(inside) > MAX_LEARNED:
        inside = draw_per_class(labels, max(2, MAX_LEARNED // n_classes), rng, inside)
    return inside, outside


def choose(
    encoding: Encoding,
    config: SVMConfig,
    training: TrainingImages,
    seeds: Seeds,
    copies: int | str,
    vary: float,
    n_jobs: int | None,
    progress: JointProgress = UNWATCHED,
) -> Choice:
    """The candidate that recognises most held-out training images, and why."""
    labels = training.labels
    if np.bincount(labels).min() < 3:
        return Choice(None, "frozen dictionaries: a class has fewer than three images, so nothing can be held out")
    seeds = copy.deepcopy(seeds)
    rng = np.random.default_rng(seeds.joint)
    inside, outside = hold_out(labels, rng)
    own = TrainingImages([training.items[i] for i in inside.tolist()], labels[inside], training.classes)
    held_out, y_true = [training.items[i] for i in outside.tolist()], labels[outside]
    configs = [
        replace(each.config, descriptors=clone(each.config.descriptors, safe=False)) for each in encoding.branches
    ]
    frozen = [learn_branch(each, own, copy.deepcopy(seeds), n_jobs) for each in configs]
    seen = _add_copies(own, copies, seeds)

    def solve(network: Encoding) -> LinearSVM:
        return train(EncodedImages(network, seen.items, n_jobs), seen.labels, config, n_jobs).svm

    def judge(network: Encoding, svms: Sequence[LinearSVM]) -> list[NDArray[np.bool_]]:
        """Which of the held-out images every SVM recognises."""

        def decide(batch: list[NamedImage]) -> list[NDArray[np.intp]]:
            features = network.encode(batch)
            return [pick_class(svm.decide(features)) for svm in svms]

        predicted = zip(*network.map_batches(decide, held_out, n_jobs), strict=True)
        return [np.concatenate(batches) == y_true for batches in predicted]

    before = Encoding(frozen, encoding.weights)
    svm = solve(before)
    (reference,) = judge(before, [svm])
    if not is_surely_better(np.ones_like(reference), reference):
        why = f"of {len(outside)} held-out training images they mistake {(~reference).sum()}, too few to tell a gain"
        return Choice(None, f"frozen dictionaries: {why}")
    best, best_right, found = Choice(None, ""), reference, [f"frozen {_percent(reference)}"]
    for candidate in CANDIDATES:
        candidate = replace(candidate, vary=vary)
        trial = _prepare(before, svm, config, own, seeds, copies, candidate, n_jobs)
        what = f"trying {candidate.epochs} epochs, mu {candidate.mu:g}"
        after = Encoding(trial.run(*_watch(trial, own, progress, what)), encoding.weights)
        right, *as_trained = judge(after, [solve(after), *([trial.make_svm()] if vary > 0.0 else [])])
        line = f"{candidate.epochs} epochs, mu {candidate.mu:g}: {_percent(right)}"
        keeps_svm = bool(as_trained) and as_trained[0].sum() > right.sum()
        if as_trained:
            line += f", {_percent(as_trained[0])} with the SVM as it was trained"
        if keeps_svm:
            right = as_trained[0]
        found.append(line)
        if right.sum() <= best_right.sum():
            break
        best, best_right = Choice(candidate, "", keeps_svm), right
        if not is_surely_better(right, reference, HOPE):
            break  # the next takes three times as long
    on = f"on {len(outside)} held-out training images: {'; '.join(found)}"
    if best.config is None or not is_surely_better(best_right, reference):
        return Choice(None, f"frozen dictionaries, joint training was not clearly ahead {on}")
    kept = ", the SVM as it was trained" if best.keeps_svm else ""
    return best._replace(why=f"joint training, {best.config.epochs} epochs, mu {best.config.mu:g}{kept}, ahead {on}")


def _percent(right: NDArray[np.bool_]) -> str:
    """A share, with as many places as so many images bear."""
    return f"{100 * right.mean():.{1 if len(right) < 2000 else 2}f} %"
