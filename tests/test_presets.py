"""Presets are parameters of the classifier, and what they promise can be fitted, saved and changed."""

import numpy as np
import pytest

from ddlcn import ConvMap, DDLCNClassifier, DenseSIFT, load_model
from ddlcn.presets import NAMES, get_preset


def test_the_paper_is_the_constructor():
    assert get_preset("paper") == {}
    assert DDLCNClassifier.preset("paper").get_params() == DDLCNClassifier().get_params()


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_recognises_and_travels(name, stripes, tmp_path):
    images, labels = stripes
    if name == "turned":  # across and along are the same to it
        labels = np.where(labels == "aslant", "aslant", "straight")
    model = DDLCNClassifier.preset(name, random_state=0).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) > 0.9
    model.save(tmp_path / "m.ddlcn")
    found = load_model(tmp_path / "m.ddlcn").decision_function(images)
    assert np.array_equal(found, model.decision_function(images))


def test_changes_go_before_the_preset():
    assert DDLCNClassifier.preset("fast", C=7.0).C == 7.0


class Mine:
    """Descriptors that somebody wrote."""

    def transform(self, images):
        raise NotImplementedError


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("auto", "backbone")])
@pytest.mark.parametrize("features", [DenseSIFT(patch_size=20), Mine(), "sift", [DenseSIFT(), Mine()]])
def test_other_descriptors_keep_what_the_preset_is(name, features):
    usual, changed = get_preset(name), get_preset(name, features=features)
    assert features == "sift" or changed["features"] == features
    assert {**changed, "features": None} == {**usual, "features": None}


@pytest.mark.parametrize("name", ["fast", "accurate"])
def test_maps_of_networks_have_parameters_of_their_own(name):
    alone = get_preset(name, features="cnn")
    assert alone["n_layers"] == 1
    assert {**get_preset(name, features=ConvMap()), "features": "cnn"} == alone
    both = get_preset(name, features=[DenseSIFT(patch_size=20), "cnn"])
    assert both["n_layers"] == 1
    (_, own), second = both["features"]
    assert own["deep_atoms"] == get_preset(name)["deep_atoms"]
    assert second == "cnn"


@pytest.mark.parametrize("name", ["fast", "accurate"])
def test_changes_reach_every_kind_of_descriptor(name):
    model = DDLCNClassifier.preset(name, features=["sift", "cnn"], n_neighbors=7, beta=0.3)
    for branch in model.configure().branches:
        assert set(branch.n_neighbors) == {7}
        assert set(branch.beta) == {0.3}


def test_presets_do_not_share_objects():
    one, other = (DDLCNClassifier.preset("fast") for _ in range(2))
    assert one.features is not other.features


def test_an_unknown_name():
    with pytest.raises(ValueError, match="'paper', 'fast', 'accurate'"):
        DDLCNClassifier.preset("furious")


@pytest.mark.parametrize("name", ["paper", "fast", "accurate"])
@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_another_number_of_layers(name, n_layers):
    model = DDLCNClassifier.preset(name, n_layers=n_layers)
    (branch,) = model.configure().branches
    assert branch.n_layers == n_layers
    if name != "paper" and n_layers > 1:
        assert len(branch.deep_atoms) == n_layers - 1
        assert branch.layer_weights == (0.0, *[1.0] * (n_layers - 1))
