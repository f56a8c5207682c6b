"""More labels later: the same as if the images had been there, as far as the dictionaries allow."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, load_model
from ddlcn.growing import add_images, grow

KINDS = {
    "augmented": {"n_layers": 2},
    "residual": {"depth": "residual", "deep_atoms": (6,), "layer_weights": (0.0, 1.0), "tangents": 3},
}


@pytest.fixture(scope="module", params=list(KINDS))
def model(request, stripes):
    images, labels = stripes[0][:30], stripes[1][:30]
    model = DDLCNClassifier(atoms_per_class=3, n_neighbors=4, beta=0.05, random_state=0, **KINDS[request.param])
    return model.fit(images, labels).keep_features(images, labels)


@pytest.fixture(scope="module")
def dots(stripes):
    """A fourth kind of picture: dots."""
    y, x = np.mgrid[:32, :32]
    rng = np.random.default_rng(1)
    return np.array(
        [
            0.5 + 0.4 * np.sin(x * rng.uniform(0.7, 0.9)) * np.sin(y * rng.uniform(0.7, 0.9) + rng.uniform(0, 6))
            for _ in range(12)
        ]
    )


def test_nothing_added_changes_nothing(model, stripes):
    again = add_images(model, stripes[0][:1], stripes[1][:1])
    np.testing.assert_allclose(
        add_images(model, stripes[0][30:32], stripes[1][30:32]).decision_function(stripes[0][40:]),
        add_images(add_images(model, stripes[0][30:31], stripes[1][30:31]), stripes[0][31:32], stripes[1][31:32])
        .decision_function(stripes[0][40:]),
        atol=1e-4,
    )  # fmt: skip
    assert again.kept_.n_images == 31
    assert model.kept_.n_images == 30  # the old model is as it was


def test_it_is_the_svm_of_all_images_on_the_old_dictionaries(model, stripes):
    from sklearn.svm import LinearSVC

    updated = add_images(model, stripes[0][30:45], stripes[1][30:45])
    F = model.transform(stripes[0][:45])
    reference = LinearSVC(C=model.C, dual=False, tol=1e-8, max_iter=10_000).fit(F, stripes[1][:45])
    expected = reference.decision_function(model.transform(stripes[0][45:]))
    np.testing.assert_allclose(updated.decision_function(stripes[0][45:]), expected, atol=1e-3)
    assert updated.card_["images_per_class"] == [15, 15, 15]


def test_a_new_class(model, stripes, dots, tmp_path):
    updated = add_images(model, dots[:8], ["dots"] * 8)
    assert updated.classes_.tolist() == ["across", "along", "aslant", "dots"]
    assert np.mean(updated.predict(dots[8:]) == "dots") == 1.0
    assert updated.score(stripes[0][30:], stripes[1][30:]) > 0.9
    assert np.array_equal(updated.atom_labels_, model.atom_labels_)
    explanation = updated.explain(dots[9])
    assert explanation.ranking[0] == "dots"
    assert {share.learned_from for share in explanation.top_atoms("dots", 3)} <= {"across", "along", "aslant", None}
    updated.save(tmp_path / "m.ddlcn")
    loaded = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(loaded.decision_function(dots), updated.decision_function(dots))
    once_more = add_images(loaded, stripes[0][30:33], stripes[1][30:33])
    assert once_more.kept_.n_images == 41


def test_patches_keep_their_labels_when_a_class_comes_before_theirs(stripes, dots, tmp_path):
    images, labels = stripes[0][:18], stripes[1][:18]
    model = DDLCNClassifier(1, 2, random_state=0).fit(images, labels).keep_features(images, labels)
    model.keep_patches(images, labels)
    updated = add_images(model, dots[:4], ["a new one"] * 4)
    assert updated.classes_[0] == "a new one"
    updated.save(tmp_path / "m.ddlcn")
    for later in (updated, load_model(tmp_path / "m.ddlcn")):
        assert later.patches_.labels.tolist() == model.patches_.labels.tolist()


def test_growing_learns_atoms_of_the_new_class(model, stripes, dots):
    images = [*stripes[0][:30], *dots[:8]]
    labels = [*stripes[1][:30], *["dots"] * 8]
    grown = grow(model, images, labels)
    assert len(grown.dictionaries_[0]) == len(model.dictionaries_[0]) + 3
    assert np.array_equal(grown.dictionaries_[0][:9], model.dictionaries_[0])
    assert grown.atom_labels_[9:].tolist() == ["dots"] * 3
    assert np.mean(grown.predict(dots[8:]) == "dots") == 1.0
    assert len(model.dictionaries_[0]) == 9
    with pytest.raises(ValueError, match="no image of 'across'"):
        grow(model, dots, ["dots"] * 12)


def test_what_cannot_be_done_is_said(stripes):
    plain = DDLCNClassifier(1, 2, random_state=0).fit(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="kept no features"):
        plain.add_images(stripes[0][:1], stripes[1][:1])
    plain.keep_features(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="pass the same"):
        plain.add_images(stripes[0][:1], [3])
    with pytest.raises(ValueError, match="2 labels for 1 images"):
        plain.add_images(stripes[0][:1], ["along", "along"])
