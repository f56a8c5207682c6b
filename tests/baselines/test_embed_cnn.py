"""EmbedCNN: neighbours come together, pairs do not contradict the labels, without its loss it is SmallCNN."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from ddlcn.baselines.cnn import SmallCNN, standardise
from ddlcn.baselines.embed_cnn import UNKNOWN, EmbedCNN, agree, differ, find_pairs, measure_pairs

SETTINGS = {"image_shape": (16, 16), "channels": (8, 16), "n_steps": 40, "batch_size": 16, "n_jobs": 1}


def make_small(**changes):
    """A network that takes a second: pictures of 16 x 16, few channels, few steps."""
    return EmbedCNN(**{**SETTINGS, "n_neighbors": 3, "random_state": 0, **changes})


def measure_distances(model, images, pairs):
    """Mean distance between the features of pairs (n_pairs, 2) of images, of unit norm."""
    torch = pytest.importorskip("torch")
    from ddlcn.baselines.cnn import build_network

    network = build_network(torch, (16, 16), (8, 16), len(model.classes_), 0.0)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in model.weights_.items()})
    with torch.inference_mode():
        pictures = standardise(model._take(images, fitting=False))
        features = network.eval()[:-2](torch.from_numpy(pictures[:, None])).numpy()
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return np.linalg.norm(features[pairs[:, 0]] - features[pairs[:, 1]], axis=1).mean()


def test_pairs_are_the_nearest_that_may_be_of_one_class():
    rng = np.random.default_rng(0)
    pictures, y = rng.random((20, 4, 4)).astype(np.float32), rng.integers(-1, 2, 20)
    distances = pairwise_distances(pictures.reshape(20, -1))
    np.fill_diagonal(distances, np.inf)
    expected = set()
    for i in range(20):
        for j in np.argsort(distances[i])[:5].tolist():
            if y[i] == y[j] or UNKNOWN in (y[i], y[j]):
                expected.add((i, j))
    found = [tuple(pair) for pair in find_pairs(pictures, y, 5).tolist()]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert len(find_pairs(pictures[:3], np.full(3, UNKNOWN), 10)) == 6


def test_what_is_known_of_two_labels():
    y, others = np.array([0, 0, UNKNOWN, 0, UNKNOWN]), np.array([0, 1, 1, UNKNOWN, UNKNOWN])
    assert agree(y, others).tolist() == [True, False, True, True, True]
    assert differ(y, others).tolist() == [False, True, True, True, True]


def test_loss_of_pairs_is_the_formula():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(4, 6, 5))
    parts /= np.linalg.norm(parts, axis=2, keepdims=True)
    a, b, c, d = parts
    near = ((a - b) ** 2).sum(axis=1).mean()
    gaps = np.maximum(0, 1.3 - np.linalg.norm(c - d, axis=1))
    assert (gaps == 0).any()
    assert (gaps > 0).any()
    tensors = [torch.from_numpy(part) for part in parts]
    assert float(measure_pairs(torch, tensors[:2], tensors[2:], 1.3)) == pytest.approx(near + (gaps**2).mean())
    nobody = (tensors[2][:0], tensors[3][:0])
    assert float(measure_pairs(torch, tensors[:2], nobody, 1.3)) == pytest.approx(near)


def test_equal_pictures_give_a_finite_gradient():
    torch = pytest.importorskip("torch")
    g = torch.ones((3, 4), requires_grad=True)
    measure_pairs(torch, (g, g), (g, g * 1.0), 1.0).backward()
    assert torch.isfinite(g.grad).all()


def test_without_weight_or_pairs_it_is_the_small_network(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    plain = SmallCNN(**SETTINGS, random_state=0).fit(images[:30], labels[:30]).decision_function(images)
    ours = make_small(weight=0.0).fit(images[:30], labels[:30]).decision_function(images)
    np.testing.assert_array_equal(ours, plain)
    three = [int(np.flatnonzero(labels == name)[0]) for name in np.unique(labels)]  # no two may be neighbours
    plain = SmallCNN(**SETTINGS, random_state=0).fit(images[three], labels[three]).decision_function(images)
    ours = make_small().fit(images[three], labels[three]).decision_function(images)
    np.testing.assert_array_equal(ours, plain)


def test_recognises_stripes(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    model = make_small().fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) >= 0.95
    assert model.losses_[-5:].mean() < 0.7 * model.losses_[:5].mean()


def test_pictures_without_labels_bring_their_neighbours_together(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    pairs = find_pairs(standardise(images[9:, ::2, ::2]), np.full(51, UNKNOWN), 3) + 9
    far = np.array([(i, j) for i in range(9, 60) for j in range(9, 60) if labels[i] != labels[j]])
    ratios = []
    for weight in (0.0, 3.0):
        model = make_small(unlabelled=images[9:], weight=weight).fit(images[:9], labels[:9])
        ratios.append(measure_distances(model, images, pairs) / measure_distances(model, images, far))
    assert ratios[1] < 0.8 * ratios[0]


def test_same_seed_same_scores_and_it_pickles(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    model = make_small(n_steps=5, unlabelled=images[20:40]).fit(images[:20], labels[:20])
    scores = model.decision_function(images)
    np.testing.assert_array_equal(clone(model).fit(images[:20], labels[:20]).decision_function(images), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(images), scores)
    fewer = clone(model).set_params(unlabelled=images[20:30]).fit(images[:20], labels[:20])
    assert not np.allclose(fewer.decision_function(images), scores)


def test_pictures_without_labels_may_have_another_size(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    others = [image[:20, :24] for image in images[20:30]]
    model = make_small(n_steps=3, unlabelled=others).fit(images[:20], labels[:20])
    assert np.isfinite(model.decision_function(images)).all()


@pytest.mark.parametrize(("name", "value"), [("n_neighbors", 0), ("weight", -1), ("margin", -1), ("n_steps", 0)])
def test_wrong_arguments_are_named(stripes, name, value):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=name):
        make_small(**{name: value}).fit(*stripes)
