"""K-SVD, LC-KSVD, orthogonal matching pursuit and SRC against the packages `dictlearn` and `dictol`: time, objective.

Both learn from the same random faces, with the same number of atoms, entries per code and iterations; K-SVD from the
same start too. Dictionaries are judged by the rival's own coder: what its codes leave of the training images.

`dictlearn` starts LC-KSVD class by class only where a code has no more entries than a class has atoms, so there both
are held to that number. It starts from the first images of a class, and so do we here: images must come shuffled, for
neighbours in Extended Yale B, lit alike, are a bad start. From one start, with one update per coding, the two end
with the same objective to 13 digits: it stacks the label-consistency targets, as published, and we do not have to (see
`ddlcn.baselines.ksvd`). Its own names are the other way round: its `alpha` is the weight of the labels and its `beta`
that of label consistency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from benchmarks.data import Faces
from benchmarks.rivals import load
from benchmarks.timing import NOT_INSTALLED, Bar, Row, time_in_turns
from ddlcn.baselines.collaborative import SRC
from ddlcn.baselines.inputs import RandomFaces
from ddlcn.baselines.ksvd import LCKSVD2, SCALE
from ddlcn.baselines.ksvd_learning import learn_ksvd, learn_with_labels, start_by_class
from ddlcn.coding.lasso import encode_lasso
from ddlcn.coding.omp import encode_omp

Array = NDArray[Any]
dictlearn = load("dictlearn")
# Loaded here for the reason that `rivals` gives; it is not part of `import dictlearn`.
classification = load("dictlearn.classification")
dictol = load("dictol.SRC")
dictol_optimize = load("dictol.optimize")
SPEED_BAR = Bar(">=", 1.0)
OBJECTIVE_BAR = Bar("<=", 1.0)


def make_random_faces(faces: Faces, per_person: int = 32, n_components: int = 504) -> tuple[Array, Array]:
    """Random faces (n, n_components) of `per_person` images of every person, shuffled, and who it is (n,)."""
    people, y = np.unique(faces.people, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    rows = np.concatenate([order[y[order] == person][:per_person] for person in range(len(people))])
    return RandomFaces(n_components, random_state=0).fit_transform(faces.images[rows]), y[rows]


def compare_ksvd(
    X: Array, y: Array, *, atoms_per_class: int = 15, n_nonzero: int = 30, n_iter: int = 10, repeats: int = 3
) -> list[Row]:
    """Rows for K-SVD of X (n, m), rows of unit norm, from a start by class, and for coding X over what was learned."""
    seeds = np.random.SeedSequence(0).spawn(int(y.max()) + 1)
    start, _ = start_by_class(X, y, atoms_per_class, n_nonzero, 5, seeds)
    n_nonzero = min(n_nonzero, len(start))
    found: dict[str, Array] = {}

    def learn() -> None:
        found["ddlcn"] = learn_ksvd(X, start, n_nonzero, n_iter, n_jobs=1)[0]

    def learn_with_rival() -> None:
        # "worst": an atom without users becomes the item that is represented worst, as with us.
        learner = dictlearn.DictionaryLearning(
            len(start),
            fit_algorithm="aksvd",
            n_nonzero_coefs=n_nonzero,
            max_iter=n_iter,
            dict_init=start,
            replace_unused_atoms="worst",
            random_state=0,
        )
        found["dictlearn"] = learner.fit(X).components_

    contenders: dict[str, Callable[[], object]] = {"ddlcn": learn}
    coders: dict[str, Callable[[], object]] = {"ddlcn": lambda: encode_omp(X, start, n_nonzero, n_jobs=1)}
    if dictlearn is not None:
        contenders["dictlearn"] = learn_with_rival
        coders["dictlearn"] = lambda: dictlearn.sparse_encode(X, start, algorithm="omp", n_nonzero_coefs=n_nonzero)
    coding = time_in_turns(coders, 5 * repeats)  # compiles all but the update
    learn_ksvd(X[:2], start[:1], 1, 1, n_jobs=1)  # compiles that
    learning = time_in_turns(contenders, repeats, warm_up=False)
    left = {name: evaluate(X, D, n_nonzero) for name, D in found.items()}

    what = f"K-SVD, {len(start)} atoms of {len(X):,} x {X.shape[1]}, {n_nonzero} entries, {n_iter} iterations"
    return [
        compare_times(f"OMP, {len(start)} atoms, {n_nonzero} entries: time", coding, "dictlearn omp"),
        compare_times(f"{what}: time", learning, "dictlearn aksvd"),
        compare_objectives(f"{what}: objective", left, "dictlearn aksvd"),
    ]


def compare_lcksvd(
    X: Array, y: Array, *, atoms_per_class: int = 15, n_iter: int = 10, init_iter: int = 20, repeats: int = 3
) -> list[Row]:
    """Rows for LC-KSVD2 with the published weights, from images X (n, m) and classes y (n,) to decisions.

    The images come shuffled; every class needs `atoms_per_class` of them.
    """
    ours = LCKSVD2(atoms_per_class, atoms_per_class, max_iter=n_iter, init_iter=init_iter, n_jobs=1, random_state=0)
    n_classes = int(y.max()) + 1
    weights = np.full(n_classes, (ours.alpha * atoms_per_class + ours.beta) / SCALE)
    found: dict[str, tuple[Array, Array]] = {}

    def learn() -> None:
        """As `LCKSVD2.fit` does it, but from the first images of each class, where the rival starts."""
        parts = [X[y == c] for c in range(n_classes)]
        starts = [learn_ksvd(own, own[:atoms_per_class], atoms_per_class, init_iter, n_jobs=1)[0] for own in parts]
        how = (atoms_per_class, ours.ridge / SCALE, n_iter, 1)
        found["ddlcn"] = learn_with_labels(X, np.concatenate(starts), np.eye(n_classes)[y], weights, *how)[:2]

    learners: dict[str, Callable[[], object]] = {"ddlcn": learn}
    deciders: dict[str, Callable[[], object]] = {"ddlcn": lambda: ours.predict(X)}
    if classification is not None:
        rival = classification.LCDLClassifier(
            atoms_per_class,
            alpha=ours.beta / SCALE,
            beta=ours.alpha / SCALE,
            ridge_gamma=ours.ridge / SCALE,
            n_nonzero_coefs=atoms_per_class,
            max_iter=n_iter,
            init_iter=init_iter,
            init_method="trained",
            random_state=0,
        )
        learners["dictlearn"] = lambda: rival.fit(X, y)
        deciders["dictlearn"] = lambda: rival.predict(X)
    ours.fit(X, y)  # compiles
    if dictlearn is not None:
        dictlearn.sparse_encode(X[:2], X[:2], algorithm="omp", n_nonzero_coefs=1)
    learning = time_in_turns(learners, repeats, warm_up=False)
    deciding = time_in_turns(deciders, 5 * repeats)
    if classification is not None:
        found["dictlearn"] = (rival.dictionary_, rival.classifier_)

    roots = np.sqrt(weights[0])
    stacked = np.hstack([X, roots * np.eye(n_classes)[y]])
    left = {
        name: evaluate(stacked, normalize(np.hstack([D, roots * W.T])), atoms_per_class)
        for name, (D, W) in found.items()
    }

    what = f"LC-KSVD2, {len(ours.dictionary_)} atoms of {len(X):,} x {X.shape[1]}, {n_iter} iterations"
    return [
        compare_times(f"{what}: time to learn", learning, "dictlearn LCDL"),
        compare_times(f"{what}: time to decide", deciding, "dictlearn LCDL"),
        compare_objectives(f"{what}: objective", left, "dictlearn LCDL"),
    ]


def evaluate(X: Array, D: Array, n_nonzero: int) -> float:
    """||X - Z D||^2 at codes by the rival's pursuit where it is installed, else by ours; they agree to 13 digits."""
    if dictlearn is None:
        return float(((X - encode_omp(X, D, n_nonzero) @ D) ** 2).sum())
    codes = dictlearn.sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=n_nonzero)
    return float(((X - codes @ D) ** 2).sum())


def compare_times(what: str, best: dict[str, float], label: str, rival: str = "dictlearn") -> Row:
    """The rival's time over ours."""
    ours = f"{best['ddlcn']:.3f} s"
    if rival not in best:
        return Row(what, 1, ours, f"{label} {NOT_INSTALLED}", None, SPEED_BAR)
    return Row(what, 1, ours, f"{label} {best[rival]:.3f} s", best[rival] / best["ddlcn"], SPEED_BAR)


def compare_objectives(what: str, left: dict[str, float], label: str, rival: str = "dictlearn") -> Row:
    """Ours over the rival's."""
    ours = f"{left['ddlcn']:.4f}"
    if rival not in left:
        return Row(what, 1, ours, f"{label} {NOT_INSTALLED}", None, OBJECTIVE_BAR)
    return Row(what, 1, ours, f"{label} {left[rival]:.4f}", left["ddlcn"] / left[rival], OBJECTIVE_BAR)


def compare_src(X: Array, y: Array, *, alpha: float = 0.005, n_test: int = 100, repeats: int = 3) -> list[Row]:
    """Rows for SRC of the last `n_test` images over the others: against `dictlearn`, by pursuit, and DICTOL, by FISTA.

    X (n, m), rows of unit norm, shuffled. `dictlearn` codes by pursuit, with a tenth as many entries as dimensions,
    and is held against ours by pursuit, with as many; DICTOL solves the lasso, with 100 steps of FISTA, and is held
    against ours, time and objective.
    """
    train, test = slice(0, len(X) - n_test), slice(len(X) - n_test, len(X))
    order = np.argsort(y[train], kind="stable")  # DICTOL wants classes side by side
    A, labels = X[train][order], y[train][order]
    ours = SRC(alpha, n_jobs=1).fit(A, labels)
    pursuit = SRC(coding="omp", n_jobs=1).fit(A, labels)
    contenders: dict[str, Callable[[], object]] = {
        "ddlcn": lambda: ours.predict(X[test]),
        "pursuit": lambda: pursuit.predict(X[test]),
    }
    if classification is not None:
        rival = classification.SRCClassifier().fit(A, labels)
        contenders["dictlearn"] = lambda: rival.predict(X[test])
    if dictol is not None:
        dictol.utils.vec = np.ravel  # its own asks numpy for an order that there is no more
        other = dictol.SRC(lamb=alpha)
        other.fit(A.T, labels + 1)
        contenders["DICTOL"] = lambda: other.predict(X[test].T)
    best = time_in_turns(contenders, repeats)
    what = f"SRC, {n_test} images over {len(A):,} x {X.shape[1]}, alpha {alpha:g}"
    by_pursuit = {("ddlcn" if name == "pursuit" else name): best[name] for name in best if name != "ddlcn"}
    rows = [
        compare_times(
            f"SRC by pursuit, {n_test} images, {X.shape[1] // 10} entries: time", by_pursuit, "dictlearn SRC"
        ),
        compare_times(f"{what}: time", best, "DICTOL SRC", "DICTOL"),
    ]
    left = {"ddlcn": evaluate_lasso(X[test], A, encode_lasso(X[test], A, alpha, tol=ours.tol).codes, alpha)}
    if dictol is not None:
        lasso = dictol_optimize.Lasso(A.T, alpha)
        lasso.fit(X[test].T, iterations=100)
        left["DICTOL"] = evaluate_lasso(X[test], A, lasso.coef_.T, alpha)
    return [*rows, compare_objectives(f"{what}: objective", left, "DICTOL, 100 steps", "DICTOL")]


def evaluate_lasso(X: Array, A: Array, codes: Any, alpha: float) -> float:
    """1/2 ||X - Z A||^2 + alpha ||Z||_1 of all images together."""
    return float(0.5 * ((X - codes @ A) ** 2).sum() + alpha * abs(codes).sum())
