"""Image features in, the weights of a linear SVM out (DESIGN 2, "Classifier")."""

from ddlcn.svm.gram import gram_matrix, stream_gram
from ddlcn.svm.linear import LinearSVM, SVMSettings, fit_dual, fit_pairs, fit_svm
from ddlcn.svm.route import Training, prefer_gram, train

__all__ = [
    "LinearSVM",
    "SVMSettings",
    "Training",
    "fit_dual",
    "fit_pairs",
    "fit_svm",
    "gram_matrix",
    "prefer_gram",
    "stream_gram",
    "train",
]
