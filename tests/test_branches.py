"""Several kinds of descriptors side by side: their features joined, shares chosen, decisions explained, files kept."""

from __future__ import annotations

import pickle
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from ddlcn import DDLCNClassifier, DenseSIFT, Descriptors, load_model
from ddlcn.blocks import Encoding, find_atom
from ddlcn.images import NamedImage, name_images
from ddlcn.inspection.patches import collect_patches
from ddlcn.persistence.model_file import ModelFileError, describe_model
from ddlcn.workflows.update import expand, update


class Noise:
    """Descriptors that have nothing to do with the picture."""

    def transform(self, images):
        rng = np.random.default_rng(7)
        xy = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=2).reshape(-1, 2).astype(np.float32)
        return [Descriptors(rng.random((16, 8)).astype(np.float32), xy, (4, 4)) for _ in images]


def small(features, **how):
    usual = {"n_layers": 1, "atoms_per_class": 3, "n_neighbors": 4, "beta": 0.05, "random_state": 0}
    return DDLCNClassifier(**{**usual, "features": features, **how})


TWO = [DenseSIFT(patch_size=8, step=6), DenseSIFT(patch_size=16, step=4)]


@pytest.fixture(scope="module")
def fitted(stripes):
    images, labels = stripes
    return small(TWO, first_order=2).fit(images[:30], labels[:30])


def test_the_feature_is_those_of_the_branches_weighted(fitted, stripes):
    images, labels = stripes
    joined = fitted.transform(images[30:36]).toarray()
    start = 0
    for features, share in zip(TWO, fitted.branch_weights_, strict=True):
        own = small(features, first_order=2).fit(images[:30], labels[:30]).transform(images[30:36]).toarray()
        np.testing.assert_allclose(joined[:, start : start + own.shape[1]], np.sqrt(share) * own, atol=1e-6)
        start += own.shape[1]
    assert start == joined.shape[1]
    assert np.linalg.norm(joined, axis=1) == pytest.approx(1, abs=1e-5)
    assert sum(fitted.branch_weights_) == pytest.approx(1)


def test_images_in_a_stream_give_what_images_at_once_give(fitted, stripes):
    images = stripes[0]
    np.testing.assert_array_equal(fitted.predict(images), fitted.predict(image for image in images))


class Watched(DenseSIFT):
    """Dense SIFT that notes in which threads it was asked."""

    seen: ClassVar[list[str]] = []

    def extract(self, image, name="image"):
        self.seen.append(threading.current_thread().name)
        time.sleep(0.002)  # so that no thread gets to do all the work
        return super().extract(image, name)


def test_every_branch_uses_all_threads(stripes):
    images, labels = stripes
    model = small([DenseSIFT(patch_size=8, step=6), Watched(patch_size=16, step=4)]).fit(images[:30], labels[:30])
    Watched.seen.clear()
    model.set_params(n_jobs=2).predict(np.concatenate([images, images]))
    assert len(set(Watched.seen)) == 2


def test_a_branch_without_a_share_is_not_asked(fitted, stripes):
    class Silent(DenseSIFT):
        def extract(self, image, name="image"):
            raise AssertionError("asked")

    items = [NamedImage("image", stripes[0][30])]
    first, second = fitted.branches_
    silent = replace(second, descriptors=Silent())
    joined = Encoding([first, silent], (1.0, 0.0)).transform(items, 1).toarray()
    alone = Encoding([first], (1.0,)).transform(items, 1).toarray()
    np.testing.assert_array_equal(joined[:, : alone.shape[1]], alone)
    assert not joined[:, alone.shape[1] :].any()


def test_descriptors_that_say_nothing_get_no_share(stripes):
    images, labels = stripes
    model = small([DenseSIFT(patch_size=8, step=6), Noise()]).fit(images[:30], labels[:30])
    assert model.branch_weights_[0] >= 0.5
    assert model.score(images[30:], labels[30:]) > 0.9


def test_a_decision_is_split_exactly_among_the_patches_of_all_branches(fitted, stripes):
    image = stripes[0][40]
    explanation = fitted.explain(image)
    np.testing.assert_allclose(explanation.scores, fitted.decision_function([image])[0], atol=1e-6)
    n_patches = [len(features.transform([image])[0]) for features in TWO]
    assert explanation.contributions.shape == (sum(n_patches), 3)
    assert explanation.heat_map(explanation.ranking[0]).shape == explanation.image_shape == (32, 32)
    top = explanation.top_atoms(explanation.ranking[0], 100)
    assert {find_atom(fitted.branches_, share.atom)[0] is fitted.branches_[1] for share in top} == {True, False}
    for share in top:
        branch, atom = find_atom(fitted.branches_, share.atom)
        layer1 = branch.dictionaries[0]
        where = np.flatnonzero((layer1 == atom).all(axis=1))
        assert share.learned_from == (branch.atom_labels[where[0]] if len(where) else None)


def test_it_survives_a_file_a_pickle_and_more_images(fitted, stripes, tmp_path):
    images, labels = stripes
    wanted = fitted.decision_function(images[30:40])
    fitted.save(tmp_path / "m.ddlcn")
    for model in (load_model(tmp_path / "m.ddlcn"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(model.decision_function(images[30:40]), wanted)
        assert model.branch_weights_ == fitted.branch_weights_
        np.testing.assert_array_equal(model.atom_labels_, fitted.atom_labels_)
    small(TWO, first_order=2, keep_features=True).fit(images[:30], labels[:30]).save(tmp_path / "kept.ddlcn")
    more = update(load_model(tmp_path / "kept.ddlcn"), images[30:45], labels[30:45])
    assert more.score(images[45:], labels[45:]) > 0.8


def test_new_classes_get_atoms_in_every_branch(fitted, stripes):
    images, labels = stripes
    labels = labels.copy()
    labels[:9:3] = "new"
    expanded = expand(fitted, images[:30], labels[:30])
    for before, after in zip(fitted.branches_, expanded.branches_, strict=True):
        assert len(after.dictionaries[0]) == len(before.dictionaries[0]) + 3
        assert (after.atom_labels[-3:] == "new").all()
    assert len(expanded.predict(images[30:])) == 30


def test_each_kind_may_have_parameters_of_its_own(stripes, tmp_path):
    images, labels = stripes
    changes = [{}, {"n_layers": 2, "depth": "residual", "deep_atoms": (4,), "pool_power": 0.5, "atoms_per_class": 2}]
    pairs = [TWO[0], (TWO[1], changes[1])]
    model = small(pairs).fit(images[:30], labels[:30])
    alone = small(TWO[1], **changes[1]).fit(images[:30], labels[:30])
    own = model.transform(images[30:33]).toarray()[:, -alone.coef_.shape[1] :]
    wanted = np.sqrt(model.branch_weights_[1]) * alone.transform(images[30:33]).toarray()
    np.testing.assert_allclose(own, wanted, atol=1e-6)
    assert [len(atoms) for atoms in model.dictionaries_] == [9, 6, 4]
    model.save(tmp_path / "m.ddlcn")
    loaded = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(loaded.decision_function(images[30:]), model.decision_function(images[30:]))
    assert loaded.features[1][1] == changes[1]
    with pytest.raises(ValueError, match="have 'C': only n_layers"):
        small([TWO[0], (TWO[1], {"C": 3.0})]).fit(images, labels)


def test_an_empty_list_is_refused(stripes):
    with pytest.raises(ValueError, match="features is empty"):
        small([]).fit(*stripes)


@pytest.fixture(scope="module")
def colours():
    """24 pictures of red and of blue noise."""
    rng = np.random.default_rng(0)
    images, labels = [], []
    for i in range(24):
        picture = rng.integers(0, 120, (40, 48, 3))
        picture[..., 2 * (i % 2)] += 100
        images.append(picture.astype(np.uint8))
        labels.append(("red", "blue")[i % 2])
    return images, np.array(labels)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    pytest.importorskip("onnxruntime")
    from tests.descriptors.pretrained.tiny import write_tiny

    return write_tiny(tmp_path_factory.mktemp("net") / "tiny.onnx")


@pytest.fixture(scope="module")
def model(network, colours):
    return small(f"onnx:{network}").fit(colours[0][:12], colours[1][:12])


def test_colours_are_told_apart_and_the_decision_is_split(model, colours):
    images, labels = colours
    assert model.score(images[12:], labels[12:]) == 1.0
    explanation = model.explain(images[20])
    score = model.decision_function([images[20]])[0]
    np.testing.assert_allclose(explanation.scores, [-score, score], atol=1e-6)
    assert all(share.atom >= 0 for share in explanation.top_atoms("red", 50))
    height, width = explanation.heat_map("red").shape
    assert width / height == pytest.approx(48 / 40, abs=0.01)


def test_the_whole_image_has_two_thirds_of_the_weight(model, colours):
    F = model.transform(colours[0][:3]).toarray()
    n = model.branches_[0].descriptors.n_responses_
    np.testing.assert_allclose(np.linalg.norm(F[:, -n:], axis=1) ** 2, 2 / 3, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(F, axis=1), 1, atol=1e-5)


def test_with_a_single_image_per_class_the_whole_counts_more(network, colours, tmp_path):
    images, labels = colours
    model = small(f"onnx:{network}").fit(images[:2], labels[:2])
    n = model.branches_[0].descriptors.n_responses_
    model.save(tmp_path / "m.ddlcn")
    for each in (model, load_model(tmp_path / "m.ddlcn")):
        F = each.transform(images[:3]).toarray()
        np.testing.assert_allclose(np.linalg.norm(F[:, -n:], axis=1) ** 2, 4 / 5, atol=1e-5)


def test_the_model_file_names_the_network_and_refuses_another(model, network, colours, tmp_path):
    model.save(tmp_path / "m.ddlcn")
    told = describe_model(tmp_path / "m.ddlcn")["backbone"]
    sha256 = model.branches_[0].descriptors._open()[0].sha256
    assert told == f"tiny.onnx, sha256 {sha256}"
    loaded = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(loaded.decision_function(colours[0]), model.decision_function(colours[0]))

    content, wanted = network.read_bytes(), model.predict(colours[0])
    try:
        network.write_bytes(content + b"\xf2\x07\x00")  # an unknown, empty field: still a network
        with pytest.raises(ModelFileError, match=r"another backbone 'tiny.onnx': sha256 .*here is"):
            load_model(tmp_path / "m.ddlcn")
        network.unlink()
        with pytest.raises(ModelFileError, match=r"needs the backbone 'tiny.onnx' .*beside the model"):
            load_model(tmp_path / "m.ddlcn")
        (tmp_path / "tiny.onnx").write_bytes(content)  # beside the model it is found
        moved = load_model(tmp_path / "m.ddlcn")
        np.testing.assert_array_equal(moved.predict(colours[0]), wanted)
    finally:
        network.write_bytes(content)


def test_patches_can_be_kept_and_shown(model, colours):
    from ddlcn.web.explanation import explain_image

    images, labels = colours
    with_patches = small(model.features, keep_patches=True).fit(images[:12], labels[:12])
    shown = explain_image(with_patches, Image.fromarray(images[20]))
    assert all(atom["patch"] and atom["near"] and not atom["glyph"] for atom in shown["sides"][0]["atoms"])


def test_together_with_sift(network, colours, tmp_path):
    images, labels = colours
    model = small([DenseSIFT(min_side=40), f"onnx:{network}"]).fit(images[:12], labels[:12])
    assert model.score(images[12:], labels[12:]) == 1.0  # SIFT is blind to colours
    assert model.branch_weights_[1] >= 0.5
    model.save(tmp_path / "both.ddlcn")
    np.testing.assert_array_equal(load_model(tmp_path / "both.ddlcn").predict(images), model.predict(images))


def test_patches_of_several_kinds_are_those_of_each(network, colours):
    images, labels = colours
    model = small([DenseSIFT(min_side=40), f"onnx:{network}"], keep_patches=True).fit(images[:12], labels[:12])
    n_first = model.branches_[0].n_atoms
    for start, branch in zip((0, n_first), model.branches_, strict=True):
        alone = collect_patches([branch], list(name_images(images[:12])), labels[:12], 1)
        for atom in range(branch.n_atoms):
            together = model.patches_.of(start + atom)
            np.testing.assert_array_equal([p for p, _ in together], [p for p, _ in alone.of(atom)])


def test_weights_that_are_given_are_not_chosen(colours, tmp_path, monkeypatch):
    images, labels = colours
    views = [(DenseSIFT(min_side=40), {"weight": 3}), (DenseSIFT(min_side=40, contrast="local"), {"weight": 1})]
    monkeypatch.setattr("ddlcn.choosing.branch_weights.fit_dual", None)  # nothing is tried
    model = small(views).fit(images[:12], labels[:12])
    assert model.branch_weights_ == (0.75, 0.25)
    norms = np.square(model.transform(images[:3]).toarray()[:, : model.encoding.n_columns // 2]).sum(axis=1)
    np.testing.assert_allclose(norms, 0.75, rtol=1e-5)
    model.save(tmp_path / "m.ddlcn")
    again = load_model(tmp_path / "m.ddlcn")
    assert again.branch_weights_ == (0.75, 0.25)
    np.testing.assert_array_equal(again.predict(images), model.predict(images))
    with pytest.raises(ValueError, match="either every kind of descriptor has a weight, or none"):
        small([views[0], DenseSIFT()]).fit(images[:12], labels[:12])
    with pytest.raises(ValueError, match="weight must be"):
        small([(DenseSIFT(), {"weight": 0})]).fit(images[:12], labels[:12])


def test_a_torch_module_works_and_cannot_be_put_into_a_file(colours, tmp_path):
    torch = pytest.importorskip("torch")
    from ddlcn import ConvMap

    torch.manual_seed(0)
    features = ConvMap(torch.nn.Conv2d(3, 8, 8, stride=8), sides=(64,))
    model = small(features).fit(colours[0][:12], colours[1][:12])
    assert model.score(colours[0][12:], colours[1][12:]) == 1.0
    with pytest.raises(ValueError, match="cannot be saved to a file"):
        model.save(tmp_path / "m.ddlcn")


def test_the_packaged_network_recognises_photographs(data_root):
    """Five classes of Caltech 101, five pictures each: SIFT cannot do this."""
    from ddlcn.datasets import load_dataset
    from ddlcn.descriptors.pretrained import has_networks

    if not has_networks():
        pytest.skip("ddlcn[cnn] is not installed")
    data = load_dataset("caltech101")
    names = ("dalmatian", "lotus", "pizza", "rooster", "wrench")
    train, test = [], []
    for name in names:
        own = np.flatnonzero(data.labels == list(data.class_names).index(name))
        train += own[:5].tolist()
        test += own[5:15].tolist()
    y = np.asarray(data.labels)
    model = DDLCNClassifier.preset("fast", features="cnn", random_state=0)
    model.fit([data.images[i] for i in train], y[train])
    assert model.score([data.images[i] for i in test], y[test]) >= 0.96
    assert Path(str(model.branches_[0].descriptors.network)).name == "efficientnet-lite0"
