"""Explanations: the parts sum to the whole, and each part belongs to the patch that it came from."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.descriptors import describe
from ddlcn.images import NamedImage

RESIDUAL = {"depth": "residual", "deep_atoms": (5,), "layer_weights": (0.5, 1.0)}
KINDS = {
    "one layer": {"n_layers": 1},
    "augmented": {"n_layers": 3, "pool_power": 0.5},
    "residual": RESIDUAL,
    "first_order": {**RESIDUAL, "first_order": 4, "features": DenseSIFT((12, 16), 5, border=3)},
}


@pytest.fixture(scope="module", params=list(KINDS))
def model(request, stripes):
    parameters = {"atoms_per_class": 3, "n_neighbors": 4, "beta": 0.05, "random_state": 0, **KINDS[request.param]}
    return DDLCNClassifier(**parameters).fit(stripes[0][:30], stripes[1][:30])


def test_contributions_sum_to_the_decision_values(model, stripes):
    images = stripes[0][30:]
    decisions = model.decision_function(images)
    for image, expected in zip(images, decisions, strict=True):
        explanation = model.explain(image)
        np.testing.assert_allclose(explanation.scores, expected, atol=1e-5)
        sums = explanation.contributions.sum(axis=0) + explanation.intercept
        np.testing.assert_allclose(sums, expected, atol=1e-5)
        assert explanation.ranking[0] == model.predict([image])[0]


def test_the_parts_of_all_patches_are_the_feature(model, stripes):
    for image in stripes[0][:5]:
        _, parts = model.encoding.attribute(NamedImage("image", image))
        np.testing.assert_allclose(parts.sum(axis=0), model.transform([image]).toarray()[0], atol=1e-6)


def test_two_classes(stripes):
    two = np.flatnonzero(stripes[1] != "aslant")
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][two], stripes[1][two])
    explanation = model.explain(stripes[0][0])
    decision = model.decision_function(stripes[0][:1])[0]
    np.testing.assert_allclose(explanation.scores, [-decision, decision], atol=1e-5)
    np.testing.assert_allclose(explanation.of("across"), -explanation.of("along"))


def test_a_pooled_value_belongs_to_the_patch_with_the_largest_code(stripes):
    """Against a slow construction: of one cell, one layer, every patch coded alone."""
    model = DDLCNClassifier(n_layers=1, atoms_per_class=3, pyramid=(1,), random_state=0, n_neighbors=4).fit(
        stripes[0][:30], stripes[1][:30]
    )
    item, coder = NamedImage("image", stripes[0][31]), model.branches_[0].coded.coder
    described, parts = model.encoding.attribute(item)
    X = describe(model.branches_[0].descriptors, item).values
    codes = np.zeros((len(X), coder.n_atoms))
    for i in range(len(X)):
        block = coder.encode_block(X[i : i + 1])
        codes[i, block.indices[0, : block.counts[0]]] = block.values[0, : block.counts[0]]
    assert len(described) == len(X)
    dense, n_atoms = parts.toarray(), codes.shape[1]
    for column in np.flatnonzero(dense.any(axis=0)):
        atom, sign = column % n_atoms, 1 if column < n_atoms else -1
        assert np.flatnonzero(dense[:, column]).tolist() == [int(np.argmax(sign * codes[:, atom]))]


def test_the_heat_map_spreads_contributions_over_the_picture(stripes):
    model = DDLCNClassifier(n_layers=2, atoms_per_class=2, random_state=0, features=DenseSIFT((12, 16), 6)).fit(
        stripes[0][:30], stripes[1][:30]
    )
    explanation = model.explain(stripes[0][40])
    heat = explanation.heat_map("along")
    assert heat.shape == stripes[0][40].shape
    np.testing.assert_allclose(heat.sum(), explanation.of("along").sum(), atol=1e-9)
    slow = np.zeros_like(heat)
    for (x, y), size, value in zip(explanation.xy, explanation.sizes, explanation.of("along"), strict=True):
        left, top, size = int(x - (size - 1) / 2), int(y - (size - 1) / 2), int(size)
        slow[top : top + size, left : left + size] += value / size**2
    np.testing.assert_allclose(heat, slow, atol=1e-9)


def test_the_heat_map_has_the_size_of_the_picture_without_its_margin(stripes):
    features = DenseSIFT(16, 6, border=4)
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0, features=features).fit(
        stripes[0][:30], stripes[1][:30]
    )
    assert model.explain(stripes[0][0]).heat_map("across").shape == (32, 32)


def test_atoms_share_the_contributions(model, stripes):
    explanation = model.explain(stripes[0][33])
    winner = explanation.ranking[0]
    shares = explanation.top_atoms(winner, n=10_000)
    np.testing.assert_allclose(sum(s.contribution for s in shares), explanation.of(winner).sum(), atol=1e-5)
    assert [s.contribution for s in shares] == sorted((s.contribution for s in shares), reverse=True)
    n_layer1 = len(model.dictionaries_[0])
    for share in shares:
        expected = model.classes_[share.atom // 3] if share.atom < n_layer1 else None
        assert share.learned_from == expected
        assert 0 <= share.patch < len(explanation.xy)


def test_what_cannot_be_explained_is_said(stripes):
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][:30], stripes[1][:30])
    with pytest.raises(ValueError, match="none of the classes 'across', 'along', 'aslant'"):
        model.explain(stripes[0][0]).of("zebra")
    votes = DDLCNClassifier(n_layers=1, atoms_per_class=2, svm="libsvm", random_state=0).fit(
        stripes[0][:30], stripes[1][:30]
    )
    with pytest.raises(ValueError, match="votes"):
        votes.explain(stripes[0][0])
