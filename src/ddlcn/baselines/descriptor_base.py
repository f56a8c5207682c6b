"""The base class of baselines on local descriptors: a codebook, codes, pooling, a linear SVM.

In: images, or vectors (n, m), and labels. A method defines how its codebook is learned, how a descriptor is coded and
how codes are pooled; a batch is described, coded and pooled before the next is read.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ddlcn.baselines.base import Baseline, Labels
from ddlcn.baselines.codebooks import learn_centres
from ddlcn.baselines.inputs import is_matrix
from ddlcn.blocks import CodedBlock, EncodedImages, Encoding, SingleBranch
from ddlcn.decisions import iter_decisions
from ddlcn.descriptors import Descriptors, keep_descriptors, resolve_descriptors, sample_descriptors
from ddlcn.descriptors.sampling import N_SAMPLED
from ddlcn.images import NamedImage, name_images
from ddlcn.pooling import check_pyramid
from ddlcn.svm import SVMConfig, train
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]
NamedImages = list[NamedImage]


class WholeVector:
    """The descriptor of an image that is a vector: the vector itself."""

    def describe(self, vector: Array, name: str = "vector") -> Descriptors:
        return Descriptors(vector[None], np.zeros((1, 2), np.float32), (1, 1))


class DescriptorBaseline(Baseline):
    """A baseline on local descriptors. A method adds `_make_coder`, and perhaps its own dictionary or pooling.

    Its constructor has `n_atoms`, `features` (as `DDLCNClassifier` takes it: "sift" or an object like `DenseSIFT()`),
    `pyramid`, `n_jobs` and `random_state`. Neither `features` nor `pyramid` is used for vectors.

    Attributes
    ----------
    dictionary_ : ndarray (atoms, m)
    """

    _features: Any
    _levels: tuple[int, ...]

    def __init__(
        self,
        n_atoms: int = 1024,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        C: float = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.features = features
        self.pyramid = pyramid
        self.C = C
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _take(self, images: Any, fitting: bool) -> NamedImages:
        if is_matrix(images) if fitting else hasattr(self, "n_features_in_"):
            X = validate_data(self, images, reset=fitting, dtype=np.float64)
            if fitting:
                self._features, self._levels = WholeVector(), (1,)
            return [NamedImage(f"row {i}", row) for i, row in enumerate(X)]
        if fitting:
            for name in ("n_features_in_", "feature_names_in_"):  # from an earlier fit on vectors
                if hasattr(self, name):
                    delattr(self, name)
            self._features, self._levels = self._make_features(), check_pyramid(self.pyramid)
        elif is_matrix(images):
            raise ValueError(f"this {type(self).__name__} was fitted on images: pass images, not a matrix of vectors")
        return keep_descriptors(images) if fitting else list(name_images(images))

    def _make_features(self) -> Any:
        """What describes an image."""
        return resolve_descriptors(self.features)

    def _learn(self, items: NamedImages, y: Labels) -> None:
        C = check_number("C", self.C, above=True)
        self._fit_dictionary(items)
        n_classes = len(self.classes_)
        config = SVMConfig(n_classes, C, "liblinear", np.ones(n_classes))
        self._svm = train(EncodedImages(self._make_encoding(), items, self.n_jobs), y, config, self.n_jobs).svm
        self.coef_, self.intercept_ = self._svm.coef, self._svm.intercept

    def _decide(self, items: NamedImages) -> Array:
        batches = iter_decisions(self._make_encoding(), self._svm, items, self.n_jobs)
        return np.concatenate([batch.decisions for batch in batches])

    def _fit_dictionary(self, items: NamedImages) -> None:
        n_atoms = check_count("n_atoms", self.n_atoms)
        sample_seed, dictionary_seed = self._spawn(3)[1:]
        if isinstance(self._features, WholeVector):
            chosen = np.random.default_rng(sample_seed).permutation(len(items))[:N_SAMPLED]
            sample = np.stack([items[i][1] for i in np.sort(chosen).tolist()])
        else:
            sample = sample_descriptors(self._features, items, sample_seed, self.n_jobs)
        self.dictionary_ = self._learn_dictionary(sample, n_atoms, dictionary_seed)

    def _learn_dictionary(self, sample: Array, n_atoms: int, seed: np.random.SeedSequence) -> Array:
        """Atoms (<= n_atoms, m) from descriptors (n, m)."""
        return learn_centres(sample, n_atoms, seed)

    @abstractmethod
    def _make_coder(self) -> Any:
        """Return the fitted dictionary, prepared: an object with encode_block(X) -> CodeBlock."""

    def _make_block(self) -> CodedBlock:
        """Codes to features; max pooling."""
        coder = self._make_coder()
        return CodedBlock(coder, np.ones(coder.n_atoms), None, self._levels)

    def _make_encoding(self) -> Encoding:
        """Images to features. Made anew for every call, so that nothing of it need be pickled."""
        return Encoding([SingleBranch(self._features, self._make_block(), self._levels)], (1.0,))
