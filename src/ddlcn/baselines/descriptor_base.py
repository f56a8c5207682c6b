"""What baselines on local descriptors share: a codebook, codes, pooling, a linear SVM.

Images, or vectors (n, m), and labels come in. A method says how its codebook is learned, how a descriptor is coded and
how codes are pooled; the rooms of the network describe, code and pool in one stream.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ddlcn._validation import check_count, check_number
from ddlcn.baselines.base import Baseline, Labels
from ddlcn.baselines.codebooks import learn_centres
from ddlcn.baselines.inputs import is_matrix
from ddlcn.features import Descriptors, name_images, resolve_features, sample_descriptors
from ddlcn.features.by_class import N_SAMPLED
from ddlcn.network import ForwardPass, ImageFeatures
from ddlcn.pooling import check_pyramid
from ddlcn.svm import SVMSettings, train

Array = NDArray[Any]
NamedImages = list[tuple[str, Any]]  # what an image is called in messages, and the image


class WholeVector:
    """What describes an image that is a vector already: the vector is its only descriptor."""

    def describe(self, vector: Array, name: str = "vector") -> Descriptors:
        return Descriptors(vector[None], np.zeros((1, 2), np.float32), (1, 1))


class DescriptorBaseline(Baseline):
    """A baseline on local descriptors. A method adds `_make_coder`, and perhaps its own dictionary or pooling.

    Its constructor has `n_atoms`, `features` (as `DDLCNClassifier` takes it: "sift" or an object like `DenseSIFT()`),
    `pyramid`, `n_jobs` and `random_state`. Neither `features` nor `pyramid` counts where vectors are passed in.

    Attributes
    ----------
    dictionary_ : ndarray (atoms, m)
    """

    n_atoms: int
    features: Any
    pyramid: tuple[int, ...]
    C: float
    n_jobs: int | None
    _features: Any
    _levels: tuple[int, ...]

    def _take(self, images: Any, fitting: bool) -> NamedImages:
        if is_matrix(images) if fitting else hasattr(self, "n_features_in_"):
            X = validate_data(self, images, reset=fitting, dtype=np.float64)
            if fitting:
                self._features, self._levels = WholeVector(), (1,)
            return [(f"row {i}", row) for i, row in enumerate(X)]
        if fitting:
            for name in ("n_features_in_", "feature_names_in_"):  # what an earlier fit on vectors left
                if hasattr(self, name):
                    delattr(self, name)
            self._features, self._levels = resolve_features(self.features), check_pyramid(self.pyramid)
        elif is_matrix(images):
            raise ValueError(f"this {type(self).__name__} was fitted on images: pass images, not a matrix of vectors")
        return list(name_images(images))

    def _learn(self, items: NamedImages, y: Labels) -> None:
        C = check_number("C", self.C, above=True)
        self._fit_dictionary(items)
        source = ImageFeatures(self._make_forward(), items, self.n_jobs, False)
        n_classes = len(self.classes_)
        self._machine = train(
            source, y, SVMSettings(n_classes, C, "liblinear", np.ones(n_classes)), self.n_jobs
        ).machine
        self.coef_, self.intercept_ = self._machine.coef, self._machine.intercept

    def _decide(self, items: NamedImages) -> Array:
        blocks = self._make_forward().iter_features(items, self.n_jobs)
        return np.concatenate([self._machine.decide(block) for block in blocks])

    def _fit_dictionary(self, items: NamedImages) -> None:
        n_atoms = check_count("n_atoms", self.n_atoms)
        sample_seed, dictionary_seed = self._spawn(3)[1:]
        if isinstance(self._features, WholeVector):
            chosen = np.random.default_rng(sample_seed).permutation(len(items))[:N_SAMPLED]
            sample = np.stack([items[i][1] for i in np.sort(chosen).tolist()])
        else:
            sample = sample_descriptors(self._features, items, sample_seed)
        self.dictionary_ = self._learn_dictionary(sample, n_atoms, dictionary_seed)

    def _learn_dictionary(self, sample: Array, n_atoms: int, seed: np.random.SeedSequence) -> Array:
        """Atoms (<= n_atoms, m) from descriptors (n, m)."""
        return learn_centres(sample, n_atoms, seed)

    @abstractmethod
    def _make_coder(self) -> Any:
        """The fitted dictionary, prepared: an object with encode_block(X) -> CodeBlock."""

    def _make_forward(self) -> ForwardPass:
        """Images to features; max pooling. Made anew for every call, so that nothing of it need be pickled."""
        coder = self._make_coder()
        return ForwardPass(self._features, coder, np.ones(coder.n_atoms), None, self._levels, 1.0, "auto")
