"""Image features in, the weights of a linear SVM and probabilities out (docs/method.md, "Classifier")."""

from ddlcn.svm.calibration import Calibration, Calibrator, find_temperature
from ddlcn.svm.decisions import decide_by_dual, pick_class, to_logits
from ddlcn.svm.feature_rows import BYTES_PER_NONZERO, FeatureRows, KeptFeatures
from ddlcn.svm.gram import gram_matrix, stream_gram
from ddlcn.svm.linear import LinearSVM, SVMConfig, fit_dual, fit_pairs, fit_svm, one_against_rest
from ddlcn.svm.route import Training, prefer_gram, train

__all__ = [
    "BYTES_PER_NONZERO",
    "Calibration",
    "Calibrator",
    "FeatureRows",
    "KeptFeatures",
    "LinearSVM",
    "SVMConfig",
    "Training",
    "decide_by_dual",
    "find_temperature",
    "fit_dual",
    "fit_pairs",
    "fit_svm",
    "gram_matrix",
    "one_against_rest",
    "pick_class",
    "prefer_gram",
    "stream_gram",
    "to_logits",
    "train",
]
