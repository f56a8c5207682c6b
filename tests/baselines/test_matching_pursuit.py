"""M-HMP: patches, pooled codes and paths are what slow loops say, and it recognises."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.baselines import MHMP
from ddlcn.baselines.matching_pursuit_layers import EPS, OMPCoder, PooledCodes, RawPatches, learn_atoms
from ddlcn.coding.omp import encode_omp

SMALL = {"n_atoms": (10, 20), "n_samples": 300, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).random((25, 34))


@pytest.fixture(scope="module")
def atoms():
    atoms = np.random.default_rng(1).normal(size=(7, 25))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


@pytest.mark.parametrize("step", [1, 3])
def test_raw_patches_are_those_of_a_slow_loop(picture, step):
    found = RawPatches(5, step, 100, 5, False).describe(picture)
    slow = [
        (picture[y : y + 5, x : x + 5].ravel(), (x + 2, y + 2)) for y in range(0, 21, step) for x in range(0, 30, step)
    ]
    values = np.array([patch - patch.mean() for patch, _ in slow])
    np.testing.assert_allclose(found.values, values, atol=0.003)  # grey values of 8 bits
    np.testing.assert_array_equal(found.xy, [xy for _, xy in slow])
    assert found.image_shape == (25, 34)


def test_a_colour_patch_has_no_mean_in_any_colour(picture):
    colours = np.stack([picture, 0.5 * picture, picture**2], axis=2)
    found = RawPatches(4, 2, 100, 4, True).describe(colours)
    assert found.values.shape[1] == 48
    np.testing.assert_allclose(found.values.reshape(-1, 3, 16).mean(axis=2), 0, atol=1e-6)
    assert np.abs(found.values[:, :16] - 2 * found.values[:, 16:32]).max() < 0.02


def test_small_pictures_are_enlarged_and_large_ones_reduced(picture):
    assert RawPatches(5, 1, 100, 50, False).describe(picture).image_shape == (50, 68)
    assert RawPatches(5, 1, 17, 5, False).describe(picture).image_shape == (12, 17)


def test_pooled_codes_are_those_of_a_slow_loop(picture, atoms):
    patches = RawPatches(5, 1, 100, 16, False)
    found = PooledCodes(patches, atoms, 3, 4).describe(picture)
    raw = patches.describe(picture)
    codes = encode_omp(raw.values, atoms, 3, n_jobs=1).toarray()
    # 6 x 8 cells of 4 pixels: half a pixel is left over above and below, one on either side.
    row = np.clip(np.floor((raw.xy[:, 1] + 0.5 - 0.5) / 4), 0, 5)
    column = np.clip(np.floor((raw.xy[:, 0] + 0.5 - 1) / 4), 0, 7)
    assert found.values.shape == (3 * 5, 16 * 14)
    for number, (top, left) in enumerate((t, l) for t in range(3) for l in range(5)):
        slow = np.zeros((14, 4, 4))
        for y in range(4):
            for x in range(4):
                inside = codes[(row == top + y) & (column == left + x)]
                slow[:7, y, x] = np.maximum(inside, 0).max(axis=0)
                slow[7:, y, x] = np.maximum(-inside, 0).max(axis=0)
        slow /= np.sqrt((slow**2).sum() + EPS)
        np.testing.assert_allclose(found.values[number], slow.ravel(), atol=1e-5)
        np.testing.assert_allclose(found.xy[number], [1 + 4 * left + 7.5, 0.5 + 4 * top + 7.5])


def test_the_coder_is_matching_pursuit(atoms):
    X = np.random.default_rng(2).normal(size=(20, 25))
    block = OMPCoder(atoms, 4).encode_block(X)
    codes = encode_omp(X, atoms, 4, n_jobs=1).toarray()
    for i in range(20):
        np.testing.assert_allclose(codes[i, block.indices[i, : block.counts[i]]], block.values[i, : block.counts[i]])
        assert np.count_nonzero(codes[i]) == block.counts[i]


def test_learned_atoms_approximate_better_than_where_they_started():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 12)) * (rng.random((200, 1)) > 0.2)

    def loss(atoms):
        return np.square(X - encode_omp(X, atoms, 2, n_jobs=1) @ atoms).sum()

    seed = np.random.SeedSequence(0)
    losses = [loss(learn_atoms(X, 8, 2, n_iter, seed, 1)) for n_iter in (0, 10)]
    assert losses[1] < 0.9 * losses[0]
    assert learn_atoms(np.zeros((5, 12)), 8, 2, 3, seed, 1).shape == (1, 12)


@pytest.mark.parametrize("options", [{}, {"paths": ((8,),)}, {"paths": ((4, 12),)}, {"colour": True}])
def test_it_recognises_stripes(stripes, options):
    images, labels = stripes
    options = {"paths": ((8,), (5, 16)), **SMALL, **options}
    model = MHMP(**options).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) >= 0.9
    assert [len(layers) for layers in model.dictionaries_] == [len(path) for path in options["paths"]]


def test_paths_with_the_same_first_layer_share_its_dictionary_and_sizes_may_differ(stripes):
    images, labels = stripes
    model = MHMP(((5, 16), (5, 20)), **SMALL).fit([images[0], images[1][:24], images[2][:, :30]], labels[:3])
    (first, _), (second, _) = model.dictionaries_
    assert first is second
    assert model.coef_.shape == (3, 2 * 21 * sum(len(layers[-1]) for layers in model.dictionaries_))
    assert np.isfinite(model.decision_function([images[5][3:]])).all()


@pytest.mark.parametrize(
    ("paths", "message"),
    [((), "one or more"), (((5, 16, 36),), "one or two patch sizes"), (((5, 18),), "a multiple of 4")],
)
def test_paths_are_checked(stripes, paths, message):
    images, labels = stripes
    with pytest.raises(ValueError, match=message):
        MHMP(paths).fit(images[:6], labels[:6])
