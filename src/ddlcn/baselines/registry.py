"""Every method by its name, ours and the baselines, for `ddlcn compare` and the experiments.

A method is a class, its arguments that are not the defaults, and its input: local "descriptors"; whole
"pictures"; "photos", in colour; or "vectors", one per image, made by one of `ddlcn.baselines.inputs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from inspect import signature
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Method:
    """A method: its class (in `ddlcn.baselines`, or "DDLCN"), arguments, input and description."""

    name: str
    made_by: str
    works_on: str  # "descriptors", "pictures", "photos" or "vectors"
    about: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""  # the extra that installs what it imports


_ALL = (
    Method("ddlcn", "DDLCN", "photos", "DDLCN as `ddlcn train` has it: the recipe chosen itself", {"preset": "auto"}),
    Method(
        "ddlcn auto",
        "DDLCN",
        "descriptors",
        "DDLCN, the recipe chosen on training images, no pretrained network",
        {"preset": "auto", "recipes": ("photo", "colour", "turned", "aligned", "drawn")},
    ),
    Method("ddlcn fast", "DDLCN", "descriptors", "DDLCN, one scale of patches", {"preset": "fast"}),
    Method(
        "ddlcn accurate", "DDLCN", "descriptors", "DDLCN, three scales and first-order features", {"preset": "accurate"}
    ),
    Method("ddlcn photo", "DDLCN", "descriptors", "DDLCN for photographs", {"preset": "photo"}),
    Method("ddlcn colour", "DDLCN", "descriptors", "DDLCN where colour tells much", {"preset": "colour"}),
    Method("ddlcn turned", "DDLCN", "descriptors", "DDLCN for pictures without a right way up", {"preset": "turned"}),
    Method("ddlcn aligned", "DDLCN", "descriptors", "DDLCN for faces and the like", {"preset": "aligned"}),
    Method("ddlcn drawn", "DDLCN", "descriptors", "DDLCN for digits and drawings", {"preset": "drawn"}),
    Method("ddlcn paper", "DDLCN", "descriptors", "DDLCN with the paper's settings", {"preset": "paper"}),
    Method(
        "ddlcn cnn",
        "DDLCN",
        "photos",
        "DDLCN on a pretrained network's map",
        {"preset": "fast", "features": "cnn"},
        "cnn",
    ),
    Method(
        "ddlcn sift + cnn",
        "DDLCN",
        "photos",
        "DDLCN on SIFT and on a pretrained network's map",
        {"preset": "fast", "features": ["sift", "cnn"]},
        "cnn",
    ),
    Method("linear SVM", "VectorSVM", "vectors", "linear support vector machine"),
    Method("RBF SVM", "VectorSVM", "vectors", "Gaussian support vector machine", {"kernel": "rbf", "C": 10.0}),
    Method(
        "HOG + SVM", "VectorSVM", "pictures", "linear SVM on histograms of gradients", {"features": "hog"}, "baselines"
    ),
    Method("nearest neighbour", "NearestNeighbour", "vectors", "label of the most similar training image"),
    Method("SRC", "SRC", "vectors", "sparse representation over the training images, 2009"),
    Method("CRC", "CRC", "vectors", "collaborative (ridge) representation, 2011"),
    Method("RRC_L1", "RRC_L1", "vectors", "regularised robust coding, 2013"),
    Method("KSVD", "KSVD", "vectors", "K-SVD dictionary and a ridge classifier, 2006"),
    Method("DKSVD", "DKSVD", "vectors", "discriminative K-SVD, 2010"),
    Method("LCKSVD1", "LCKSVD1", "vectors", "label-consistent K-SVD without the classifier's error, 2011"),
    Method("LCKSVD2", "LCKSVD2", "vectors", "label-consistent K-SVD, 2011"),
    Method("MBAP", "MBAP", "vectors", "l0-penalised dictionary by alternating proximal steps, 2016"),
    Method("EasyDL", "EasyDL", "vectors", "dictionary learned with an ensemble of linear classifiers, 2016"),
    Method("SupGraphDL", "SupGraphDL", "vectors", "dictionary and classifier on graphs of images and features, 2017"),
    Method("FDDL", "FDDL", "vectors", "Fisher discrimination dictionary learning, 2011"),
    Method("DLCOPAR", "DLCOPAR", "vectors", "common and class-wise dictionaries, 2012"),
    Method("LRSDL", "LRSDL", "vectors", "low-rank shared dictionary, 2017"),
    Method("ADDL", "ADDL", "vectors", "analysis dictionary and its classifier learned together, 2018"),
    Method("DDL", "DDL", "vectors", "deep dictionary learning, greedy, Tariyal 2016"),
    Method("DDL (2019)", "DDL2019", "vectors", "dictionaries trained together by a classification loss, 2019"),
    Method("MDDL-2", "MDDL", "vectors", "two layers of discriminative dictionaries, 2019", {"n_layers": 2}),
    Method("MDDL-3", "MDDL", "vectors", "three layers of them, 2019", {"n_layers": 3}),
    Method("NDL", "NDL", "vectors", "nonlinear dictionary learning, 2018"),
    Method("SNDL", "SNDL", "vectors", "supervised nonlinear dictionary learning, 2018"),
    Method("DBDL", "DBDL", "vectors", "discriminative Bayesian dictionary learning, 2016"),
    Method("JBDC", "JBDC", "vectors", "joint Bayesian dictionary and classifier, 2017"),
    Method("LLC", "LLC", "descriptors", "locality-constrained linear coding, 2010"),
    Method("ScSPM", "ScSPM", "descriptors", "sparse coding and spatial pyramid, 2009"),
    Method("KC", "KC", "descriptors", "kernel codebook, 2008"),
    Method("bag of words", "BagOfWords", "descriptors", "visual words and spatial pyramid, 2006"),
    Method("Griffin", "SpatialPyramidKernel", "descriptors", "pyramid match kernel on visual words, 2007"),
    Method("LP-beta", "LPBeta", "photos", "SVMs on seven kernels, mixed by a linear programme, 2009"),
    Method("nearest codes", "NearestCodes", "descriptors", "nearest neighbour on LLC codes"),
    Method("M-HMP", "MHMP", "pictures", "patches coded by matching pursuit in two layers on several paths, 2013"),
    Method("DCN", "DCN", "vectors", "deep coding network, 2010"),
    Method("TLCC", "TLCC", "descriptors", "two-layer local coordinate coding, 2015"),
    Method("PCANet-1", "PCANet", "pictures", "PCA filters, one stage, 2015", {"n_stages": 1}),
    Method("PCANet-2", "PCANet", "pictures", "PCA filters, two stages, 2015", {"n_stages": 2}),
    Method("Convolutional Clustering", "ConvolutionalClustering", "pictures", "filters by convolutional k-means, 2015"),
    Method("small CNN", "SmallCNN", "pictures", "a small convolutional network from scratch", {}, "torch"),
    Method("Embed CNN", "EmbedCNN", "pictures", "the same with an embedding of neighbours, 2012", {}, "torch"),
)
METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})


def find_method(name: str) -> Method:
    """Return the method of that name; raises ValueError if there is none."""
    if name not in METHODS:
        raise ValueError(f"method {name!r} is not known: choose from {', '.join(METHODS)}")
    return METHODS[name]


# The package that an extra installs, for methods that import it.
_PACKAGES = {"baselines": "skimage", "torch": "torch"}


def find_missing(name: str) -> str:
    """Return the package that a method needs and that is not installed; "" if none is missing."""
    needs = find_method(name).needs
    if needs == "cnn":
        from ddlcn.descriptors.pretrained import has_networks  # here, since it takes a second to import

        return "" if has_networks() else "onnxruntime, onnx and weights"
    package = _PACKAGES.get(needs, "")
    return package if package and find_spec(package) is None else ""


def list_arguments(name: str) -> tuple[str, ...]:
    """List the arguments of a baseline's class."""
    from ddlcn import baselines

    return tuple(signature(getattr(baselines, find_method(name).made_by)).parameters)


def make_method(name: str, seed: int, n_jobs: int | None = None, **options: Any) -> Any:
    """An estimator of images (or vectors), unfitted.

    Parameters
    ----------
    name : str
        One of METHODS.
    seed : int
    n_jobs : int, optional
    **options
        Arguments of the method's class; they override the method's own.
    """
    method = find_method(name)
    if method.made_by == "DDLCN":
        from ddlcn.classifier import DDLCNClassifier

        arguments = {**method.arguments, **options}
        return DDLCNClassifier.preset(arguments.pop("preset"), random_state=seed, n_jobs=n_jobs, **arguments)
    from ddlcn import baselines

    known = list_arguments(name)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"{name} has no argument {unknown[0]!r}: choose from {', '.join(known)}")
    return getattr(baselines, method.made_by)(**{**method.arguments, **options}, n_jobs=n_jobs, random_state=seed)
