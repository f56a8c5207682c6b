"""What layers are like: numbers that a slow, obvious version has too, and pictures of the patches that they say."""

import numpy as np
import pytest
from scipy import sparse

from ddlcn import DDLCNEncoder, DenseSIFT
from ddlcn.blocks import Encoding
from ddlcn.coding import encode_layers
from ddlcn.datasets import load_dataset
from ddlcn.descriptors import describe
from ddlcn.experiments.layers import (
    N_ATOMS,
    N_PATCHES,
    count_orientations,
    measure_layers,
    picture_atoms,
    separate,
    truncate,
)
from ddlcn.images import name_images
from ddlcn.inspection.patches import cut_patch

SETTINGS = {"atoms_per_class": 4, "deep_atoms": (8, 6), "random_state": 0}


@pytest.fixture(scope="module")
def digits(digit_folder):
    data = load_dataset(str(digit_folder))
    return list(name_images(data.images)), data.labels


@pytest.fixture(scope="module")
def model(digits):
    images = [item.image for item in digits[0]]
    return DDLCNEncoder(DenseSIFT(step=4), n_layers=3, **SETTINGS).fit(images, digits[1])


def test_a_truncated_network_is_the_one_with_fewer_layers(model, digits):
    images = [item.image for item in digits[0]]
    own = {**SETTINGS, "deep_atoms": SETTINGS["deep_atoms"][:1]}
    shallow = DDLCNEncoder(DenseSIFT(step=4), n_layers=2, **own).fit(images, digits[1])
    found = Encoding([truncate(model.branches_[0], 2)], (1.0,)).transform(digits[0], 1)
    np.testing.assert_array_equal(found.toarray(), shallow.transform(images).toarray())


def test_separability_is_the_ratio_of_scatters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 7)), rng.integers(0, 4, 30)
    X[y == 2] += 3
    means = np.stack([X[y == c].mean(axis=0) for c in range(4)])
    expected = np.sum((means[y] - X.mean(axis=0)) ** 2) / np.sum((X - means[y]) ** 2)
    assert separate(sparse.csr_array(X), y) == pytest.approx(expected)
    assert separate(sparse.csr_array(X), 5 * y) == pytest.approx(expected)  # whatever the classes are called


def test_orientations_are_counted():
    edge, flat = np.zeros((16, 8)), np.ones((16, 8))
    edge[3:9, 2] = 0.4
    two = edge + 0.4 * (np.arange(8) == 6) * (edge.sum(axis=1, keepdims=True) > 0)
    found = count_orientations(np.stack([each.ravel() for each in (edge, two, flat, 0 * flat)]))
    np.testing.assert_allclose(found[:3], [1, 2, 8])
    assert np.isfinite(found).all()


def test_pictures_average_the_patches_that_use_an_atom_most(model, digits):
    (branch,), items = model.branches_, digits[0][:12]
    deep_codes = encode_layers(branch.dictionaries, branch.config.beta, branch.config.n_neighbors, 1e-6, 1)
    layers = picture_atoms(branch, items, deep_codes)
    assert [len(each) for each in layers] == [N_ATOMS, N_ATOMS, 6]
    uses, patches = [], []
    for item in items:
        d = describe(branch.descriptors, item)
        code = model.branches_[0].coded.encode_rows(d.values.astype(branch.coded.coder.dtype)).toarray()
        uses.append(code @ deep_codes[0].toarray())
        picture = branch.descriptors.extract(item.image).picture / np.float32(255)
        patches += [cut_patch(picture, xy, size) for xy, size in zip(d.xy, d.sizes, strict=True)]
    use = np.maximum(np.concatenate(uses), 0)
    atom = use.sum(axis=0).argmax()
    mean = np.mean([patches[i] for i in np.argsort(-use[:, atom])[:N_PATCHES]], axis=0)
    expected = mean.reshape(16, 2, 16, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(layers[1][0], expected, atol=0.51)


def test_every_layer_is_measured(model, digits):
    items, labels = digits
    shown = measure_layers(model, items, labels, True, 1)
    hidden = measure_layers(model, items, labels, False, 1)
    assert len(shown) == len(hidden) == 3
    for a, b in zip(shown, hidden, strict=True):
        assert a.pop("pictures")
        assert "pictures" not in b
        assert a == b
        assert a["separability"] > 0
        assert a["largest_code"] >= a["mean_code"] > 0
        assert 1 <= a["orientations"] <= 8
