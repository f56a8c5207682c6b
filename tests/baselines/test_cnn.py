"""SmallCNN: it learns, the same each time, leaves torch's own random numbers alone, and needs torch only when used."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from ddlcn.baselines.cnn import SmallCNN, draw_batches, shift_pictures, standardise


def make_small(**changes):
    """A network that takes a second: pictures of 16 x 16, few channels, few steps."""
    settings = {"image_shape": (16, 16), "channels": (8, 16), "n_steps": 40, "batch_size": 16, "n_jobs": 1}
    return SmallCNN(**{**settings, "random_state": 0, **changes})


def test_batches_go_through_everybody_before_anybody_comes_again():
    batches = list(draw_batches(10, 4, 5, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [4] * 5
    flat = np.concatenate(batches)
    np.testing.assert_array_equal(np.sort(flat[:10]), np.arange(10))
    np.testing.assert_array_equal(np.sort(flat[10:]), np.arange(10))
    assert [len(batch) for batch in draw_batches(3, 64, 2, np.random.default_rng(0))] == [3, 3]


def test_shifted_pictures_are_the_same_pixels_elsewhere():
    rng = np.random.default_rng(0)
    pictures = rng.random((30, 9, 11))
    seen = set()
    for before, after in zip(pictures, shift_pictures(pictures, 2, rng), strict=True):
        found = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            if np.array_equal(np.pad(before, 2, "edge")[2 - down : 11 - down, 2 - right : 13 - right], after)
        ]
        assert len(found) == 1
        seen.update(found)
    assert len(seen) > 10
    np.testing.assert_array_equal(shift_pictures(pictures, 0, rng), pictures)


def test_standardised_pictures_do_not_know_the_exposure():
    picture = np.random.default_rng(0).random((1, 8, 8)).astype(np.float32)
    plain = standardise(picture)
    np.testing.assert_allclose([plain.mean(), plain.std()], [0, 1], atol=1e-5)
    np.testing.assert_allclose(standardise(0.3 * picture + 0.5), plain, atol=1e-4)
    np.testing.assert_allclose(standardise(np.full((1, 8, 8), 0.7, np.float32)), 0, atol=1e-4)


def test_importing_the_package_and_this_method_leaves_torch_out():
    code = "import sys, ddlcn, ddlcn.baselines.cnn as c; c.SmallCNN(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_torch_it_says_what_to_install(stripes, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs torch: pip install 'ddlcn\[torch\]'"):
        make_small().fit(*stripes)


def test_recognises_stripes(stripes):
    pytest.importorskip("torch")
    images, labels = stripes
    model = make_small().fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) >= 0.95
    assert model.losses_[-5:].mean() < 0.5 * model.losses_[:5].mean()
    two = labels != "along"
    model.fit(images[:30][two[:30]], labels[:30][two[:30]])
    assert model.decision_function(images).shape == (60,)
    assert model.score(images[30:][two[30:]], labels[30:][two[30:]]) >= 0.95


def test_same_seed_same_scores_and_torchs_own_state_is_left_alone(stripes):
    torch = pytest.importorskip("torch")
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()
    model = make_small(n_steps=5).fit(*stripes)
    scores = model.decision_function(stripes[0])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == n_threads
    torch.rand(3)
    np.testing.assert_array_equal(clone(model).fit(*stripes).decision_function(stripes[0]), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(stripes[0]), scores)
    other = clone(model).set_params(random_state=1).fit(*stripes).decision_function(stripes[0])
    assert not np.allclose(other, scores)


def test_scores_of_an_image_do_not_depend_on_the_others(stripes):
    pytest.importorskip("torch")
    model = make_small(n_steps=5).fit(*stripes)
    together = model.decision_function(stripes[0])
    np.testing.assert_allclose(model.decision_function(stripes[0][7:8])[0], together[7], atol=1e-4)


def test_one_image_per_class_and_constant_images():
    pytest.importorskip("torch")
    images = np.stack([np.zeros((16, 16)), np.eye(16), np.tri(16)]).astype(np.float32)
    model = make_small().fit(images, ["a", "b", "c"])
    assert np.isfinite(model.decision_function(images)).all()
    assert (model.predict(images) == ["a", "b", "c"]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"channels": (8,) * 5}, "channels"),
        ({"channels": ()}, "channels"),
        ({"n_steps": 0}, "n_steps"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"dropout": 1.0}, "dropout"),
        ({"device": "abacus"}, "device"),
    ],
)
def test_wrong_arguments_are_named(stripes, wrong, message):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        make_small(**wrong).fit(*stripes)
