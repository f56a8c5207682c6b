"""Bags of local descriptors: code every descriptor over a codebook, pool the codes in a spatial pyramid, classify.

                                  code of a descriptor x over atoms d_j                                   pooling
BagOfWords  Lazebnik et al. 2006  1 for the nearest atom                                                  sum
KC          van Gemert et al. 2008  K(x, d_j) / sum_l K(x, d_l),  K = exp(-||x - d||^2 / 2 sigma^2)       sum
ScSPM       Yang et al. 2009      argmin 1/2 ||x - z D||^2 + alpha ||z||_1                                max |z|
LLC         Wang et al. 2010      argmin ||x - z D||^2 + beta sum_j ||x - d_j||^2 z_j^2,  sum z = 1,      max z
                                  over the nearest atoms

In: images (or vectors (n, m): each is then the only descriptor of its image, and there is no pyramid) and labels. Out:
the weights of a linear SVM. `NearestCodes` uses the codes of LLC and the label of the most similar training image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.baselines.base import Labels
from ddlcn.baselines.codebooks import learn_sparse_dictionary
from ddlcn.baselines.descriptor_base import DescriptorBaseline, NamedImages
from ddlcn.baselines.histograms import Histograms, Magnitudes, SoftAssignment
from ddlcn.coding.lasso import LassoCoder
from ddlcn.coding.llc import LLCCoder
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]


def prepare_llc(dictionary: Array, n_neighbors: int, beta: float) -> LLCCoder:
    """Make the coder of LLC; validates its arguments."""
    return LLCCoder(dictionary, check_number("beta", beta), check_count("n_neighbors", n_neighbors))


class BagOfWords(DescriptorBaseline):
    """A bag of visual words in a spatial pyramid: every descriptor counts for the nearest atom.

    Parameters
    ----------
    n_atoms : int
        At most as many as there are descriptors.
    features, pyramid, n_jobs, random_state
        See `DescriptorBaseline`.
    C : float
        Regularisation of the linear SVM.
    """

    def _make_coder(self) -> SoftAssignment:
        return SoftAssignment(self.dictionary_, 1.0, 1)

    def _make_block(self) -> Histograms:
        return Histograms(self._make_coder(), self._levels)


class KC(BagOfWords):
    """A kernel codebook ("codeword uncertainty"): every descriptor counts for the atoms near it, by their distances.

    Parameters
    ----------
    n_atoms : int
        At most as many as there are descriptors.
    sigma : float
        Width of the kernel, in the units of the descriptors (SIFT: unit norm). On folds of the training images of 20
        classes of Caltech 101: 0.1 81.8, 0.15 82.2, 0.2 82.3, 0.3 80.8 % (bag of words 79.7).
    n_neighbors : int
        Differs from the paper: a descriptor is shared by this number of nearest atoms only (Liu et al. 2011), which
        keeps the codes sparse.
    features, pyramid, n_jobs, random_state
        See `DescriptorBaseline`.
    C : float
        Regularisation of the linear SVM.
    """

    def __init__(
        self,
        n_atoms: int = 1024,
        sigma: float = 0.2,
        n_neighbors: int = 20,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        C: float = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_atoms, features=features, pyramid=pyramid, C=C, n_jobs=n_jobs, random_state=random_state)
        self.sigma = sigma
        self.n_neighbors = n_neighbors

    def _make_coder(self) -> SoftAssignment:
        sigma = check_number("sigma", self.sigma, above=True)
        return SoftAssignment(self.dictionary_, sigma, check_count("n_neighbors", self.n_neighbors))


class ScSPM(DescriptorBaseline):
    """Sparse codes in a spatial pyramid.

    Parameters
    ----------
    n_atoms : int
        At most as many as there are descriptors.
    alpha : float
        Weight of the l1 norm. 0.15 for descriptors of unit norm, as in the authors' code (the paper's lambda,
        0.3 to 0.4, is for an objective without the 1/2).
    features, pyramid, n_jobs, random_state
        See `DescriptorBaseline`.
    C : float
        Regularisation of the linear SVM.
    """

    def __init__(
        self,
        n_atoms: int = 1024,
        alpha: float = 0.15,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        C: float = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_atoms, features=features, pyramid=pyramid, C=C, n_jobs=n_jobs, random_state=random_state)
        self.alpha = alpha

    def _learn_dictionary(self, sample: Array, n_atoms: int, seed: np.random.SeedSequence) -> Array:
        alpha = check_number("alpha", self.alpha, above=True)
        return learn_sparse_dictionary(sample, n_atoms, alpha, seed, self.n_jobs)

    def _make_coder(self) -> Magnitudes:
        return Magnitudes(LassoCoder(self.dictionary_, self.alpha))


class LLC(DescriptorBaseline):
    """Locality-constrained linear coding in a spatial pyramid.

    Parameters
    ----------
    n_atoms : int
        At most as many as there are descriptors.
    n_neighbors : int
        5 on SIFT (the paper's setting); 70 on whole faces.
    beta : float
        Weight of the penalty on far atoms (1e-4 in the authors' code).
    features, pyramid, n_jobs, random_state
        See `DescriptorBaseline`.
    C : float
        Regularisation of the linear SVM.
    """

    def __init__(
        self,
        n_atoms: int = 1024,
        n_neighbors: int = 5,
        beta: float = 1e-4,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        C: float = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_atoms, features=features, pyramid=pyramid, C=C, n_jobs=n_jobs, random_state=random_state)
        self.n_neighbors = n_neighbors
        self.beta = beta

    def _make_coder(self) -> LLCCoder:
        return prepare_llc(self.dictionary_, self.n_neighbors, self.beta)


class NearestCodes(DescriptorBaseline):
    """The label of the training image with the most similar feature of LLC, by the cosine; scores are similarities.

    Parameters
    ----------
    n_atoms, n_neighbors, beta
        See `LLC`.
    features, pyramid, n_jobs, random_state
        See `DescriptorBaseline`.
    """

    def __init__(
        self,
        n_atoms: int = 1024,
        n_neighbors: int = 5,
        beta: float = 1e-4,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.features = features
        self.pyramid = pyramid
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _make_coder(self) -> LLCCoder:
        return prepare_llc(self.dictionary_, self.n_neighbors, self.beta)

    def _learn(self, items: NamedImages, y: Labels) -> None:
        self._fit_dictionary(items)
        order = np.argsort(y, kind="stable")
        self._first = np.searchsorted(y[order], np.arange(len(self.classes_)))
        self._stored = self._make_encoding().transform([items[i] for i in order.tolist()], self.n_jobs)

    def _decide(self, items: NamedImages) -> Array:
        encoding = self._make_encoding()
        blocks = encoding.map_batches(encoding.encode, items, self.n_jobs)
        return np.concatenate(
            [np.maximum.reduceat((block @ self._stored.T).toarray(), self._first, axis=1) for block in blocks]
        )
