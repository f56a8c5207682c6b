"""More labels later: the same as if the images had been there, as far as the dictionaries allow."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.workflows.update import expand, update

KINDS = {
    "augmented": {"n_layers": 2},
    "residual": {"depth": "residual", "deep_atoms": (6,), "layer_weights": (0.0, 1.0), "first_order": 3},
}


@pytest.fixture(scope="module", params=list(KINDS))
def model(request, stripes):
    images, labels = stripes[0][:30], stripes[1][:30]
    model = DDLCNClassifier(
        atoms_per_class=3, n_neighbors=4, beta=0.05, random_state=0, keep_features=True, **KINDS[request.param]
    )
    return model.fit(images, labels)


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


def test_images_added_one_by_one_are_as_good_as_added_together(model, stripes):
    again = update(model, stripes[0][:1], stripes[1][:1])
    np.testing.assert_allclose(
        update(model, stripes[0][30:32], stripes[1][30:32]).decision_function(stripes[0][40:]),
        update(update(model, stripes[0][30:31], stripes[1][30:31]), stripes[0][31:32], stripes[1][31:32])
        .decision_function(stripes[0][40:]),
        atol=1e-4,
    )  # fmt: skip
    assert again.kept_.n_images == 31
    assert model.kept_.n_images == 30  # the old model is as it was


def test_it_is_the_svm_of_all_images_on_the_old_dictionaries(model, stripes):
    from sklearn.svm import LinearSVC

    updated = update(model, stripes[0][30:45], stripes[1][30:45])
    F = model.transform(stripes[0][:45])
    reference = LinearSVC(C=model.C, dual=False, tol=1e-8, max_iter=10_000).fit(F, stripes[1][:45])
    expected = reference.decision_function(model.transform(stripes[0][45:]))
    np.testing.assert_allclose(updated.decision_function(stripes[0][45:]), expected, atol=1e-3)
    assert updated.card_["images_per_class"] == [15, 15, 15]


def test_a_new_class(model, stripes, dots, tmp_path):
    updated = update(model, dots[:8], ["dots"] * 8)
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
    once_more = update(loaded, stripes[0][30:33], stripes[1][30:33])
    assert once_more.kept_.n_images == 41


def test_patches_keep_their_labels_when_a_class_comes_before_theirs(stripes, dots, tmp_path):
    images, labels = stripes[0][:18], stripes[1][:18]
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0, keep_features=True, keep_patches=True).fit(
        images, labels
    )
    updated = update(model, dots[:4], ["a new one"] * 4)
    assert updated.classes_[0] == "a new one"
    updated.save(tmp_path / "m.ddlcn")
    for later in (updated, load_model(tmp_path / "m.ddlcn")):
        assert later.patches_.labels.tolist() == model.patches_.labels.tolist()


def test_expanding_learns_atoms_of_the_new_class(model, stripes, dots):
    images = [*stripes[0][:30], *dots[:8]]
    labels = [*stripes[1][:30], *["dots"] * 8]
    expanded = expand(model, images, labels)
    assert len(expanded.dictionaries_[0]) == len(model.dictionaries_[0]) + 3
    assert np.array_equal(expanded.dictionaries_[0][:9], model.dictionaries_[0])
    assert expanded.atom_labels_[9:].tolist() == ["dots"] * 3
    assert np.mean(expanded.predict(dots[8:]) == "dots") == 1.0
    assert len(model.dictionaries_[0]) == 9
    with pytest.raises(ValueError, match="no image of 'across'"):
        expand(model, dots, ["dots"] * 12)


def test_what_cannot_be_done_is_said(stripes):
    plain = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="kept no features"):
        update(plain, stripes[0][:1], stripes[1][:1])
    plain = plain.set_params(keep_features=True).fit(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="pass the same"):
        update(plain, stripes[0][:1], [3])
    with pytest.raises(ValueError, match="2 labels for 1 images"):
        update(plain, stripes[0][:1], ["along", "along"])


def test_new_atoms_are_learned_with_the_parameters_of_their_branch(stripes, dots):
    """A branch with other parameters than the model's gets the atoms that a fit with those parameters would learn."""
    images, labels = [*stripes[0][:18], *dots[:8]], [*stripes[1][:18], *["dots"] * 8]
    own = {"l1_radius": 0.05, "dictionary_images": 3}
    pair = [DenseSIFT(12, 6), (DenseSIFT(16, 6), own)]
    model = DDLCNClassifier(pair, n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][:18], stripes[1][:18])
    other = [DenseSIFT(12, 6), DenseSIFT(16, 6)]
    plain = DDLCNClassifier(other, n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][:18], stripes[1][:18])
    first, second = (expand(each, images, labels).branches_[1].dictionaries[0][-2:] for each in (model, plain))
    assert not np.allclose(first, second)


def test_what_was_measured_before_is_no_longer_on_the_card(model, stripes):
    model.card_ |= {"accuracy": 0.9, "balanced_accuracy": 0.8, "interval": [0.8, 1.0], "tested": 30, "version": "1"}
    card = update(model, stripes[0][30:33], stripes[1][30:33]).card_
    assert set(card) == {"images_per_class", "how", "version", "files"}
