"""LP-beta (Gehler and Nowozin 2009): an SVM on every kernel, their decisions mixed by a linear programme.

    f_mc(x) = sum_i alpha_mci K_m(x, x_i) + b_mc       kernel m, class c: an SVM for every class against the rest
    F_c(x)  = sum_m beta_m f_mc(x)                     the largest wins

    max over beta, rho, xi   rho - 1 / (nu n) sum_i xi_i
    subject to   sum_m beta_m (f_m,y_i(x_i) - f_mc(x_i)) >= rho - xi_i   for every image i and every wrong class c,
                 xi >= 0,  beta >= 0,  sum_m beta_m = 1

f_m(x_i) in the programme is cross-validated: of machines that did not see x_i. At the optimum the objective is the mean
of the nu n smallest margins. In: images (or vectors (n, m)) and labels. Out: beta, and the SVMs of the kernels it uses.

We did not have the paper's text. The programme is that of the authors' own program for it (LPBoost for many classes,
one weight per kernel for all classes); that decisions are cross-validated, and that kernels are as wide as the mean
distance, is from memory and follow-ups. The kernels are ours: seven, the paper has 39 (`baselines.image_kernels`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import validate_data

from ddlcn.baselines.base import Baseline, Labels
from ddlcn.baselines.image_kernels import KERNELS, ImageKernel, Rows
from ddlcn.baselines.inputs import is_matrix
from ddlcn.baselines.kernel_svm import KernelSVM, fit_kernel_svm
from ddlcn.images import name_images
from ddlcn.utils.validation import check_choice, check_number

Array = NDArray[Any]

# Of cross-validation; fewer where a class has fewer images.
N_FOLDS = 5
# A margin that is too small by less than this does not become a row of the linear programme; a smaller beta is zero.
TOL = 1e-8
# For vectors: measure and width.
VECTOR_KERNELS = (("linear", 1.0), ("gaussian", 1.0), ("gaussian", 0.25))


class Mixture(NamedTuple):
    """The solution of the linear programme."""

    beta: Array  # (kernels,): none negative, sum one
    objective: float  # rho - 1 / (nu n) sum xi


def mix_decisions(decisions: Array, y: Labels, nu: float) -> Mixture:
    """Solve the linear programme, exactly.

    Of the n (classes - 1) rows few bind, so it starts with the worst class of every image and adds what is violated.

    Parameters
    ----------
    decisions : ndarray (n, n_classes, kernels)
    y : ndarray (n,), class indices
    nu : float in (0, 1]
    """
    n, n_classes, n_kernels = decisions.shape
    margins = decisions[np.arange(n), y][:, None] - decisions  # (n, n_classes, kernels)
    right = np.arange(n_classes) == y[:, None]

    def find_worst(beta: Array) -> tuple[Array, Array]:
        mixed = np.where(right, np.inf, margins @ beta)
        worst = mixed.argmin(axis=1)
        return worst, mixed[np.arange(n), worst]

    # Variables: beta, rho, xi.
    cost = np.concatenate([np.zeros(n_kernels), [-1.0], np.full(n, 1.0 / (nu * n))])
    total = np.concatenate([np.ones(n_kernels), np.zeros(1 + n)])[None]
    bounds = [(0, None)] * n_kernels + [(None, None)] + [(0, None)] * n
    image, wrong = np.arange(n), find_worst(np.full(n_kernels, 1.0 / n_kernels))[0]  # (rows,): the constraints so far
    while True:
        rows = np.arange(len(image))
        slack = sparse.csr_array((np.full(len(rows), -1.0), (rows, image)), shape=(len(rows), n))
        system = sparse.hstack([sparse.csr_array(-margins[image, wrong]), np.ones((len(rows), 1)), slack], format="csr")
        found = linprog(cost, system, np.zeros(len(rows)), total, [1.0], bounds, method="highs")
        if found.x is None:
            raise np.linalg.LinAlgError(f"the linear programme of LP-beta was not solved: {found.message}")
        beta, rho, xi = found.x[:n_kernels], found.x[n_kernels], found.x[n_kernels + 1 :]
        worst, least = find_worst(beta)
        violated = np.flatnonzero(least + xi < rho - TOL * max(1.0, abs(rho)))
        violated = violated[~np.isin(violated * n_classes + worst[violated], image * n_classes + wrong)]
        if not len(violated):
            beta = np.where(beta > TOL, beta, 0.0)
            return Mixture(beta / beta.sum(), float(-found.fun))
        image, wrong = np.concatenate([image, violated]), np.concatenate([wrong, worst[violated]])


class LPBeta(Baseline):
    """Several kernels, an SVM on each, and weights of the SVMs by a linear programme.

    Parameters
    ----------
    kernels : sequence
        Names of `image_kernels.KERNELS`, or pairs of a transformer of images and "chi2", "gaussian" or "linear". Not
        used for vectors, which have a linear and two Gaussian kernels.
    C : float
        Regularisation of the SVMs. On folds of training images of 20 classes of Caltech 101, 10 and 100 give the same,
        1 less.
    nu : float in (0, 1]
        Share of the training images whose margins count. On folds of the same images 0.1 gives 80.8 %, 0.3 82.6, 0.5
        83.0; the best single kernel 81.7.
    n_jobs : int, optional
        Threads.
    random_state : None, int, SeedSequence, Generator or RandomState

    Attributes
    ----------
    beta_ : ndarray (kernels,)
        Equal where a class has a single image, as nothing can be validated then. Kernels of weight 0 are not computed
        for new images.
    """

    def __init__(
        self,
        kernels: Any = ("words 12", "words 24", "words 32", "patterns", "gradients", "colours", "pixels"),
        *,
        C: float = 10.0,
        nu: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.nu = nu
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _take(self, images: Any, fitting: bool) -> Any:
        if is_matrix(images) if fitting else hasattr(self, "n_features_in_"):
            return validate_data(self, images, reset=fitting, dtype=np.float64)
        if fitting:
            for name in ("n_features_in_", "feature_names_in_"):  # from an earlier fit on vectors
                if hasattr(self, name):
                    delattr(self, name)
        elif is_matrix(images):
            raise ValueError(f"this {type(self).__name__} was fitted on images: pass images, not a matrix of vectors")
        return list(name_images(images))

    def _learn(self, items: Any, y: Labels) -> None:
        C, nu = check_number("C", self.C, above=True), check_number("nu", self.nu, above=True)
        if nu > 1.0:
            raise ValueError(f"nu must be at most 1; got {self.nu!r}")
        kernels, n_classes = self._make_kernels(items), len(self.classes_)
        fold_seed, *seeds = self._spawn(2 + len(kernels))[1:]
        grams = [kernel.fit(items, seed, self.n_jobs) for kernel, seed in zip(kernels, seeds, strict=True)]
        n_folds = min(N_FOLDS, int(np.bincount(y).min()))
        if n_folds < 2 or len(kernels) == 1:
            self.beta_ = np.full(len(kernels), 1.0 / len(kernels))
        else:
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=int(fold_seed.generate_state(1)[0]))
            decisions = np.empty((len(y), n_classes, len(kernels)))
            for train, test in folds.split(y, y):
                for m, gram in enumerate(grams):
                    svm = fit_kernel_svm(gram[np.ix_(train, train)], y[train], n_classes, C, self.n_jobs)
                    decisions[test, :, m] = _decide_all(svm, gram[np.ix_(test, train)])
            self.beta_ = mix_decisions(decisions, y, nu).beta
        self._used = [
            (float(weight), kernel, fit_kernel_svm(gram, y, n_classes, C, self.n_jobs))
            for weight, kernel, gram in zip(self.beta_, kernels, grams, strict=True)
            if weight > 0.0
        ]

    def _decide(self, items: Any) -> Array:
        scores = [weight * _decide_all(svm, kernel.transform(items)) for weight, kernel, svm in self._used]
        return np.asarray(np.sum(scores, axis=0))

    def _make_kernels(self, items: Any) -> list[ImageKernel]:
        if isinstance(items, np.ndarray):
            return [ImageKernel(Rows(), *kind) for kind in VECTOR_KERNELS]
        if isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(f"kernels must be a sequence of names or (transformer, measure); got {self.kernels!r}")
        return [
            ImageKernel(*KERNELS[check_choice("kernels", each, tuple(KERNELS))] if isinstance(each, str) else each)
            for each in self.kernels
        ]


def _decide_all(svm: KernelSVM, similarities: Array) -> Array:
    """Decisions (n, n_classes), also of two classes."""
    decisions = svm.decide(similarities)
    return np.stack([-decisions, decisions], axis=1) if decisions.ndim == 1 else decisions
