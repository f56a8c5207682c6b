"""DDLCNClassifier, the whole story: images and labels in, labels out (docs/method.md).

image -> local descriptors -> dictionaries and codes, n layers -> spatial-pyramid max pooling -> linear SVM
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from ddlcn.blocks import EncodedImages, Encoding
from ddlcn.choosing import choose_recipe
from ddlcn.configuration import EncoderConfig
from ddlcn.decisions import iter_decisions
from ddlcn.descriptors import keep_pixels
from ddlcn.encoder import DDLCNEncoder
from ddlcn.images import name_images
from ddlcn.images.copies import add_copies, count_copies
from ddlcn.inspection.explanation import Explanation, explain
from ddlcn.inspection.patches import TrainingPatches, check_patches, collect_patches
from ddlcn.joint import UNWATCHED, check_joint, choose_strength, train_jointly
from ddlcn.learning import Seed, Seeds, TrainingImages
from ddlcn.persistence.model_file import ModelParts, read_model, write_model
from ddlcn.presets import get_preset
from ddlcn.svm import Calibrator, FeatureRows, KeptFeatures, LinearSVM, SVMConfig, Training, pick_class, train
from ddlcn.utils.validation import check_choice

Array = NDArray[Any]


class DDLCNClassifier(ClassifierMixin, DDLCNEncoder):  # type: ignore[misc]
    """Deep Dictionary Learning and Coding Network: recognises images from a few labelled examples per class.

    Parameters
    ----------
    features, ..., pool_power, n_jobs, random_state, verbose : as of `DDLCNEncoder`; the defaults are the paper's
    recipes : tuple of str, default ()
        Presets among which `fit` chooses, on folds of the training images; the chosen one's parameters then count in
        place of all above and of `copies` and `C`. What `preset("auto")` sets.
    copies : int or "turned", default 0
        Virtual copies of every training image, that the SVM also learns from: slightly bent, or in all eight turns.
    C : float, default 1.0
        Weight of the training errors in the SVM.
    svm : "liblinear" or "libsvm", default "liblinear"
        One class against the rest with squared hinge loss, or one against one with hinge loss (the paper's letter).
    class_weight : dict, "balanced" or None
        Factors on C, per class.
    joint : bool or "varied", default False
        Train atoms and SVM together where held-out images say so (docs/joint.md); "varied": images bent in every epoch.
    keep_features : bool, default False
        Keep the features of the training images, in the model file too, for `ddlcn.workflows.update`; not above 2 GB.
    keep_patches : bool, default False
        Keep the patches nearest to the atoms, for explanations. They are pieces of the training pictures and are saved.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    recipe_, parameters_ : dict; of the recipe that was chosen, and all that are in force
    coef_, intercept_ : ndarrays; one row per class, one for two classes, one per pair of classes for svm="libsvm"
    linear_svm_ : LinearSVM; calibrator_ : Calibrator; patches_ : TrainingPatches or None; kept_ : KeptFeatures or None
    card_ : dict; what is known about the training, for `ddlcn info`
    branches_, branch_weights_, dictionaries_, first_order_, atom_labels_ : as of `DDLCNEncoder`

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ddlcn import DDLCNClassifier, DenseSIFT
    >>> X, y = load_digits().images / 16, load_digits().target
    >>> model = DDLCNClassifier(DenseSIFT(min_side=32), atoms_per_class=5, random_state=0).fit(X[:100], y[:100])
    >>> model.score(X[100:200], y[100:200]) > 0.8
    True
    """

    def __init__(
        self,
        features: Any = "sift",
        *,
        dictionary_images: int | None = None,
        atoms_per_class: Any = 15,
        shared_atoms: int = 0,
        l1_radius: float = 0.35,
        n_layers: int = 2,
        deep_atoms: Any = "auto",
        depth: str = "augment",
        layer_weights: tuple[float, ...] | None = None,
        n_neighbors: Any = 15,
        beta: Any = 0.15,
        first_order: int = 0,
        pyramid: tuple[int, ...] = (1, 2, 4),
        pool_power: float = 1.0,
        recipes: tuple[str, ...] = (),
        copies: int | str = 0,
        C: float = 1.0,
        svm: str = "liblinear",
        class_weight: Any = None,
        joint: bool | str = False,
        keep_features: bool = False,
        keep_patches: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            features, dictionary_images=dictionary_images, atoms_per_class=atoms_per_class, shared_atoms=shared_atoms,
            l1_radius=l1_radius, n_layers=n_layers, deep_atoms=deep_atoms, depth=depth, layer_weights=layer_weights,
            n_neighbors=n_neighbors, beta=beta, first_order=first_order, pyramid=pyramid, pool_power=pool_power,
            n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.recipes, self.copies, self.C, self.svm, self.class_weight = recipes, copies, C, svm, class_weight
        self.joint, self.keep_features, self.keep_patches = joint, keep_features, keep_patches

    @classmethod
    def preset(cls, name: str, features: Any = None, n_layers: int | None = None, **changes: Any) -> DDLCNClassifier:
        """A classifier with measured settings: "auto", "photo", "aligned", "drawn", ...; see `ddlcn.presets`.

        `features` are other descriptors than the preset's, with settings that suit them; `n_layers` is another number
        of layers; `changes` are any other parameters of the constructor, to replace the preset's.
        """
        return cls(**get_preset(name, n_layers, features, changes))

    def configure(self, C: float | None = None) -> EncoderConfig:
        """Check every parameter, before any image is read."""
        check_choice("svm", self.svm, ("liblinear", "libsvm"))
        count_copies(self.copies)
        config = super().configure(self.C if C is None else C)
        if self.keep_patches:
            check_patches(config.branches)
        check_joint(self.joint, self.svm)
        return config

    def learn(self, config: EncoderConfig, training: TrainingImages, seeds: Seeds, progress: Any = UNWATCHED) -> Self:
        """`fit`, after everything was checked: also what the experiments call. `progress`: JointProgress."""
        self.recipe_, chosen = dict[str, Any](), {}
        if self.recipes:
            choice = choose_recipe(self.recipes, self.parameters_, training, seeds, self.n_jobs)
            config, chosen = choice.recipe.config, {"chosen": choice.why}
            self.recipe_ = {**choice.recipe.parameters, "recipes": ()}
        copies = self.parameters_["copies"]
        if copies or len(config.branches) > 1:
            keep_pixels(training.items)  # pictures are read more than once
        super().learn(config, training, seeds)
        items, labels, self.classes_ = training.items, training.labels, training.classes
        show, encoding = self.verbose > 0, Encoding(self.branches_, self.branch_weights_)
        seen, rows = add_copies(items, copies, seeds.copies), np.repeat(labels, 1 + count_copies(copies))
        trained = self.fit_svm(EncodedImages(encoding, seen, self.n_jobs, show), rows, seeds.folds)
        if self.joint:
            svm, vary = (trained.svm, self._svm_config(labels)), choose_strength(self.joint, copies)
            found = train_jointly(encoding, *svm, training, seeds, copies, vary, self.n_jobs, show, progress)
            self.branches_, chosen = found.branches, {**chosen, **found.card}
            if found.history:
                new = EncodedImages(self.encoding, seen, self.n_jobs, show)
                trained = self.fit_svm(new, rows, seeds.folds, found.svm)
        keeps = self.keep_features and trained.features is not None
        self.kept_ = KeptFeatures(trained.features, self.classes_[rows]) if keeps else None
        self.patches_: TrainingPatches | None = None
        if self.keep_patches:
            self.patches_ = collect_patches(self.branches_, items, self.classes_[labels], self.n_jobs, show)
        self.card_: dict[str, Any] = {"images_per_class": np.bincount(labels).tolist(), **chosen}
        return self

    def fit_svm(self, rows: FeatureRows, labels: Array, seed: Seed, svm: LinearSVM | None = None) -> Training:
        """The SVM, unless it is given, and what its probabilities need, from features of all images and copies."""
        config = self._svm_config(labels)
        trained = train(rows, labels, config, self.n_jobs, svm)
        self.linear_svm_ = trained.svm
        n_rows = 1 + count_copies(self.parameters_["copies"])
        self.calibrator_ = Calibrator.prepare(trained, labels, config, seed, n_rows)
        return trained

    def _svm_config(self, labels: NDArray[np.intp]) -> SVMConfig:
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[labels])
        return SVMConfig(len(self.classes_), self.parameters_["C"], self.svm, weights)

    def predict(self, images: Any, reject: bool = False) -> Array:
        """The label of every image: ndarray (n,).

        Parameters
        ----------
        images : as in `fit`
        reject : bool, default False
            Whether images that look like none of the classes get None instead (dtype object). The threshold comes from
            folds of the training images: about 5 % of the images of known classes are rejected too.
        """
        decisions = self.decision_function(images)
        labels: Array = self.classes_[pick_class(decisions)]
        if reject:
            labels = labels.astype(object)
            labels[~self.calibrator_.is_known(decisions, self.n_jobs)] = None
        return labels

    def decision_function(self, images: Any) -> Array:
        """How much each class is preferred: ndarray (n, n_classes); for two classes (n,), positive for the second."""
        batches = iter_decisions(self.encoding, self.linear_svm_, images, self.n_jobs)
        return np.concatenate([batch.decisions for batch in batches])

    def predict_proba(self, images: Any) -> Array:
        """Probabilities of the classes: ndarray (n, n_classes).

        The first call calibrates on folds of the training images, about as long as fitting the SVM took.
        """
        return self.calibrator_.probabilities(self.decision_function(images), self.n_jobs)

    def explain(self, image: Any) -> Explanation:
        """Why one image is predicted as what it is: its decision values, split exactly among its patches."""
        (item,) = name_images([image])
        return explain(self.encoding, self.linear_svm_, self.classes_, item)

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, which `load_model` reads. No pickle: nothing in it is executed."""
        encoding = self.encoding
        calibration = self.calibrator_.find(self.n_jobs)
        learned = (encoding.branches, encoding.weights, self.linear_svm_, calibration)
        write_model(ModelParts(self.parameters_, self.classes_, *learned, self.card_, self.patches_, self.kept_), path)

    @property
    def parameters_(self) -> dict[str, Any]:
        """The parameters in force: the constructor's, or those of the recipe that was chosen."""
        return {**self.get_params(deep=False), **self.recipe_}

    @property
    def coef_(self) -> Array:
        """Weights of the SVM: (n_classes, columns of `transform`)."""
        return self.linear_svm_.coef

    @property
    def intercept_(self) -> Array:
        """Intercepts of the SVM, one per row of `coef_`."""
        return self.linear_svm_.intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "linear_svm_")


def load_model(path: Any) -> DDLCNClassifier:
    """Read a classifier that `save` wrote; ModelFileError if it is damaged, of another kind or a newer version."""
    parts = read_model(path)
    model = DDLCNClassifier(**parts.parameters)
    model.recipe_ = {}
    model.classes_, model.branches_, model.branch_weights_ = parts.classes, parts.branches, parts.branch_weights
    model.linear_svm_, model.calibrator_ = parts.svm, Calibrator(parts.calibration)
    model.card_, model.patches_, model.kept_ = parts.card, parts.patches, parts.kept
    return model
