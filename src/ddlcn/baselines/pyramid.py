"""An image as one vector: dense SIFT, LLC codes (Wang et al. 2010), max pooling in a spatial pyramid, fewer dimensions.

The principal components of the training images keep nearly all the information of the pyramid's 21 n_atoms numbers:
with as many components as training images, all their differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize

from ddlcn.baselines.codebooks import learn_centres
from ddlcn.baselines.components import find_components
from ddlcn.blocks import CodedBlock, Encoding, SingleBranch
from ddlcn.coding.llc import LLCCoder
from ddlcn.descriptors import keep_descriptors, resolve_descriptors, sample_descriptors
from ddlcn.images import name_images
from ddlcn.utils.validation import check_count, seed_sequence

Array = NDArray[Any]

# The published settings of LLC: neighbours, penalty, cells per side.
N_NEIGHBORS, BETA, PYRAMID = 5, 1e-4, (1, 2, 4)


class SIFTPyramid(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Images to vectors of unit norm, by LLC and principal components.

    Parameters
    ----------
    n_atoms : int
        Size of the codebook; at most the number of descriptors.
    n_components : int
        At most as many as there are training images.
    features : "sift" or an object such as `DenseSIFT(step=4)`
    n_jobs : int, optional
        Threads.
    random_state : None, int, SeedSequence, Generator or RandomState

    Attributes
    ----------
    dictionary_ : ndarray (atoms, m)
    mean_ : ndarray (21 atoms,)
    components_ : ndarray (components, 21 atoms)
    """

    def __init__(
        self,
        n_atoms: int = 1024,
        n_components: int = 3000,
        *,
        features: Any = "sift",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_components = n_components
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, images: Any, y: Any = None) -> SIFTPyramid:
        """Learn the codebook and the components from images; `y` is not looked at."""
        items = keep_descriptors(images)
        n_atoms = check_count("n_atoms", self.n_atoms)
        sample_seed, codebook_seed = seed_sequence(self.random_state).spawn(2)
        self._features = resolve_descriptors(self.features)
        self.dictionary_ = learn_centres(
            sample_descriptors(self._features, items, sample_seed, self.n_jobs), n_atoms, codebook_seed
        )
        pooled = self._make_encoding().transform(items, self.n_jobs).toarray()  # (n, 21 atoms) float32
        self.mean_, self.components_ = find_components(pooled, self.n_components)
        return self

    def transform(self, images: Any) -> NDArray[np.float64]:
        """Vectors (n, components) of unit norm."""
        encoding = self._make_encoding()
        blocks = encoding.map_batches(encoding.encode, name_images(images), self.n_jobs)
        rows = np.concatenate([(block.toarray() - self.mean_) @ self.components_.T for block in blocks])
        return np.asarray(normalize(rows.astype(np.float64)))

    def _make_encoding(self) -> Encoding:
        coder = LLCCoder(self.dictionary_, BETA, N_NEIGHBORS)
        block = CodedBlock(coder, np.ones(coder.n_atoms), None, PYRAMID)
        return Encoding([SingleBranch(self._features, block, PYRAMID)], (1.0,))
