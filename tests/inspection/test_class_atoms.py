"""Atoms that speak for a class: by the weights of the SVM, added up atom by atom."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.inspection.class_atoms import rank_class_atoms


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_largest_sums_of_positive_weights(stripes, n_classes):
    images, labels = stripes[0][:18], stripes[1][:18]
    chosen = np.flatnonzero(np.isin(labels, np.unique(labels)[:n_classes]))
    features = DenseSIFT((12, 16), 5)
    model = DDLCNClassifier(features, shared_atoms=7, n_layers=1, n_neighbors=3, first_order=3, random_state=0)
    model.fit([images[i] for i in chosen], labels[chosen])
    ranked = rank_class_atoms(model.encoding, model.linear_svm_, n_classes, 4)
    assert ranked.shape == (n_classes, 4)
    atom_of_column = model.encoding.list_atoms()
    rows = model.coef_ if n_classes > 2 else np.concatenate([-model.coef_, model.coef_])
    for own, row in zip(ranked, rows, strict=True):
        sums = [sum(w for w, a in zip(row, atom_of_column, strict=True) if a == atom and w > 0) for atom in range(7)]
        np.testing.assert_allclose([sums[a] for a in own], sorted(sums, reverse=True)[:4], rtol=1e-5)
