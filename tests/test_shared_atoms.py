"""A layer 1 that all classes share: learned from everybody's descriptors, and owned by no class."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.workflows.update import expand

SHARED = {"n_layers": 1, "shared_atoms": 20, "n_neighbors": 3, "pyramid": (4,), "random_state": 0}


@pytest.fixture(scope="module")
def fitted(stripes):
    images, labels = stripes
    return DDLCNClassifier(DenseSIFT(8, 4), **SHARED).fit(images[:30], labels[:30])


def test_it_has_the_number_of_atoms_that_was_asked_for(fitted, stripes):
    images, labels = stripes
    assert fitted.dictionaries_[0].shape == (20, 128)
    assert np.linalg.norm(fitted.dictionaries_[0], axis=1).max() <= 1 + 1e-6
    assert fitted.score(images[30:], labels[30:]) > 0.9


def test_labels_do_not_matter_to_the_atoms(fitted, stripes):
    images, labels = stripes
    shuffled = np.random.default_rng(0).permutation(labels[:30])
    other = DDLCNClassifier(DenseSIFT(8, 4), **SHARED).fit(images[:30], shuffled)
    np.testing.assert_array_equal(other.dictionaries_[0], fitted.dictionaries_[0])


def test_atoms_belong_to_no_class_in_explanations(fitted, stripes):
    explanation = fitted.explain(stripes[0][30])
    label = explanation.ranking[0]
    assert fitted.atom_labels_.size == 0
    assert {share.learned_from for share in explanation.top_atoms(label)} == {None}


def test_it_travels(fitted, stripes, tmp_path):
    fitted.save(tmp_path / "m.ddlcn")
    found = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(found.decision_function(stripes[0]), fitted.decision_function(stripes[0]))
    assert found.atom_labels_.size == 0


def test_a_new_class_changes_no_atom(fitted, stripes):
    images, labels = stripes
    names = np.where(np.arange(len(labels)) >= 45, "new", labels)
    expanded = expand(fitted, images, names)
    assert "new" in expanded.classes_
    np.testing.assert_array_equal(expanded.dictionaries_[0], fitted.dictionaries_[0])


@pytest.mark.parametrize("depth", ["augment", "residual"])
def test_deeper_layers_go_with_it(stripes, depth):
    images, labels = stripes
    deep = {**SHARED, "n_layers": 2, "deep_atoms": (8,), "depth": depth}
    model = DDLCNClassifier(DenseSIFT(8, 4), **deep).fit(images[:30], labels[:30])
    assert [len(atoms) for atoms in model.dictionaries_] == [20, 8]
    assert model.score(images[30:], labels[30:]) > 0.9
