"""Training patches: for every atom the nearest there are, each from another image."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.coding.first_order import to_unit_norm
from ddlcn.inspection.patches import PER_ATOM, SIDE, cut_patch


@pytest.fixture(scope="module")
def model(stripes):
    features = DenseSIFT((12, 16), 5, border=2)
    model = DDLCNClassifier(
        n_layers=1, atoms_per_class=2, first_order=3, n_neighbors=3, features=features, random_state=0
    )
    return model.set_params(keep_patches=True).fit(stripes[0][:18], stripes[1][:18])


def test_the_nearest_of_all_images(model, stripes):
    described = model.features.transform(stripes[0][:18])
    patches = model.patches_
    for atom in range(9):
        shared = atom >= 6
        centre = model.first_order_.atoms[atom - 6] if shared else model.dictionaries_[0][atom]
        nearest = []
        for i, d in enumerate(described):
            X = to_unit_norm(d.values, model.first_order_.floor) if shared else d.values
            distances = np.linalg.norm(X - centre, axis=1)
            nearest.append((distances.min(), i, int(distances.argmin())))
        found = patches.of(atom)
        assert len(found) == PER_ATOM
        for (_, i, patch), (pixels, label) in zip(sorted(nearest)[:PER_ATOM], found, strict=True):
            assert label == stripes[1][i]
            grey = np.round(255 * model.features.read(stripes[0][i])) / np.float32(255)  # as it is kept
            assert np.array_equal(pixels, cut_patch(grey, described[i].xy[patch], described[i].sizes[patch]))


def test_a_patch_is_the_piece_of_the_image_that_was_described(stripes):
    grey = DenseSIFT(16, 6).read(stripes[0][0])
    described = DenseSIFT(16, 6).transform([stripes[0][0]])[0]
    again = DenseSIFT(16, 6).transform([grey[0:16, 0:16]])[0]
    pixels = cut_patch(grey, described.xy[0], described.sizes[0])
    assert pixels.shape == (SIDE, SIDE)
    assert described.xy[0].tolist() == [9.5, 9.5]  # 32 pixels, patches at 2, 8, 14
    assert np.array_equal(pixels, cut_patch(grey[2:18, 2:18], again.xy[0], 16))


def test_they_travel_only_when_kept(model, stripes, tmp_path):
    model.save(tmp_path / "with.ddlcn")
    loaded = load_model(tmp_path / "with.ddlcn")
    assert np.array_equal(loaded.patches_.pixels, model.patches_.pixels)
    assert np.array_equal(loaded.patches_.labels, model.patches_.labels)
    plain = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(stripes[0][:9], stripes[1][:9])
    plain.save(tmp_path / "without.ddlcn")
    assert load_model(tmp_path / "without.ddlcn").patches_ is None


def test_descriptors_without_pictures_are_refused_before_anything_is_learned(stripes):
    class Plain:
        def transform(self, images):
            raise AssertionError("an image was described")

    model = DDLCNClassifier(Plain(), keep_patches=True)
    with pytest.raises(ValueError, match="no pictures of its own"):
        model.fit(*stripes)
