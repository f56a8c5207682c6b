"""Decision values in, probabilities out, and whether an image is of any class at all: two numbers from training folds.

p = softmax(tau * decision values). One number cannot overfit a handful of images and never changes who wins. tau makes
the decisions of held-out folds as likely as possible. An image is unknown if its winner is less likely than
that of all but REJECTED of the held-out images: that share of known images is rejected too (half of Caltech 101's
classes against the other half, 15 training images per class: area under the ROC curve 0.80 by the winner's probability,
0.80 by its decision value, 0.78 by the distance to the second).

Only the Gram matrix of the training features is needed for that, so a classifier keeps it, for at most MAX_IMAGES
images, until probabilities are asked for.

The dictionaries are those learned on all training images, held-out folds included, so with few images per class the
probabilities may come out far too sure. Test images, promised and right: MNIST, 2 per class 0.97 and 0.65, 10 per class
0.91 and 0.81, 100 per class 0.94 and 0.93; Extended Yale B, 3, 10 and 32 per person 0.48 and 0.50, 0.91 and 0.91, 0.99
and 0.99. scikit-learn's `CalibratedClassifierCV(DDLCNClassifier(), method="temperature")` learns dictionaries anew for
each fold, at as many times the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from sklearn.model_selection import StratifiedKFold

from ddlcn.svm.decisions import decide_by_dual, to_logits
from ddlcn.svm.gram import gram_matrix
from ddlcn.svm.linear import SVMConfig, fit_dual, fit_pairs
from ddlcn.svm.route import Training
from ddlcn.utils.sampling import draw_in_proportion

Array = NDArray[Any]

# One number needs no more, and the Gram matrix of 2,000 images (32 MB) still travels well in a pickle.
MAX_IMAGES = 2000
N_FOLDS = 5
# A handful of held-out images may all be recognised, and then any temperature, however high, fits. So log tau is drawn
# towards that of USUAL_TEMPERATURE, as if known to LOG_SPREAD; a hundred images outweigh it. It is also the rule where
# a class has a single image and nothing can be held out. Both numbers are mean and deviation of the log tau that folds
# of training images asked for without them: MNIST, 100 per class, 3.7; scikit-learn's digits, 20 per class, 14 (6 to 41
# over five seeds); Extended Yale B, 32 per person, 29.
USUAL_TEMPERATURE = 11.0
LOG_SPREAD = 1.0
# Share of the images of known classes that may be predicted as unknown, and the rule where nothing can be held out: an
# image is unknown whose winner is less likely than all other classes together.
REJECTED = 0.05
USUAL_THRESHOLD = 0.5


class Calibration(NamedTuple):
    """Two numbers: the temperature, and the probability of the winner below which an image is unknown."""

    temperature: float = USUAL_TEMPERATURE
    threshold: float = USUAL_THRESHOLD


@dataclass(frozen=True)
class FoldProblem:
    """What is needed to find the temperature: a sample of the training images, and how their SVM is fitted."""

    gram: Array  # (n, n) inner products of features
    y: NDArray[np.intp]  # (n,) class indices
    config: SVMConfig
    seed: int


class Calibrator:
    """Calibrates when probabilities are first asked for, then keeps nothing but the two numbers."""

    def __init__(self, problem: FoldProblem | Calibration) -> None:
        self._problem = problem

    @classmethod
    def prepare(
        cls,
        training: Training,
        y: NDArray[np.intp],
        config: SVMConfig,
        seed: np.random.SeedSequence,
        n_rows: int = 1,
    ) -> Calibrator:
        """Keep a sample of the training images: of the Gram matrix if there is one, else of the features' own.

        Every image has `n_rows` rows, itself and its copies. Copies are left out: they would give held-out images away.
        """
        rng = np.random.default_rng(seed)
        chosen = n_rows * draw_in_proportion(y[::n_rows], MAX_IMAGES, rng)
        if training.gram is None:
            kept = gram_matrix(training.features[chosen])
        else:
            kept = training.gram[np.ix_(chosen, chosen)]
        return cls(FoldProblem(kept, y[chosen], config, int(rng.integers(2**31))))

    def find(self, n_jobs: int | None) -> Calibration:
        """The two numbers; the first call does the work."""
        if isinstance(self._problem, FoldProblem):
            self._problem = calibrate(self._problem, n_jobs)
        return self._problem

    def probabilities(self, decisions: Array, n_jobs: int | None) -> Array:
        """Probabilities (n, classes) of decision values (n, classes), or (n,) for two classes."""
        return _to_probabilities(decisions, self.find(n_jobs).temperature)

    def is_known(self, decisions: Array, n_jobs: int | None) -> NDArray[np.bool_]:
        """Whether images with such decision values are likely of any class: ndarray (n,)."""
        likeliest = self.probabilities(decisions, n_jobs).max(axis=1)
        return np.asarray(likeliest >= self.find(n_jobs).threshold)


def calibrate(problem: FoldProblem, n_jobs: int | None) -> Calibration:
    """The temperature that makes the decisions of held-out folds most likely; the threshold that keeps most of them."""
    gram, y, config = problem.gram, problem.y, problem.config
    n_classes, C, weights = config.n_classes, config.C, config.weights
    smallest = int(np.bincount(y, minlength=n_classes).min())
    if smallest < 2:
        return Calibration()
    decisions = np.empty((len(y),) if n_classes == 2 else (len(y), n_classes))
    folds = StratifiedKFold(min(N_FOLDS, smallest), shuffle=True, random_state=problem.seed)
    for train, test in folds.split(gram, y):
        inside, across = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        if config.kind == "libsvm":
            decisions[test] = fit_pairs(inside, y[train], C, weights).decision_function(across)
        else:
            dual = fit_dual(inside, y[train], n_classes, C, weights, n_jobs)
            decisions[test] = decide_by_dual(across, dual)

    temperature = find_temperature(to_logits(decisions), y)
    likeliest = _to_probabilities(decisions, temperature).max(axis=1)
    return Calibration(temperature, float(np.quantile(likeliest, REJECTED)))


def find_temperature(logits: Array, y: NDArray[np.intp]) -> float:
    """The temperature that makes the classes (n,) of held-out images most likely, from their logits (n, classes)."""

    def loss(log_temperature: float) -> float:
        likelihood = special.log_softmax(np.exp(log_temperature) * logits, axis=1)
        prior = 0.5 * ((log_temperature - np.log(USUAL_TEMPERATURE)) / LOG_SPREAD) ** 2
        return float(prior - likelihood[np.arange(len(y)), y].sum())

    # Between 1/100 and 1,000: beyond, the probabilities no longer differ from uniform or from certain.
    found = optimize.minimize_scalar(loss, bounds=(np.log(0.01), np.log(1000.0)), method="bounded")
    return float(np.exp(found.x))


def _to_probabilities(decisions: Array, temperature: float) -> Array:
    return np.asarray(special.softmax(temperature * to_logits(decisions), axis=1))
