"""The model file: what goes in comes out, and everything else is refused in one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.persistence import model_file
from ddlcn.persistence.model_file import ModelFileError


@pytest.fixture(scope="module")
def model(stripes):
    features = DenseSIFT(patch_size=(12, 16), step=5)
    parameters = {"n_layers": 3, "n_neighbors": (5, None, 2), "class_weight": {"along": 2.0}, "features": features}
    return DDLCNClassifier(atoms_per_class=3, random_state=0, **parameters).fit(stripes[0][:30], stripes[1][:30])


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "stripes.ddlcn")
    return tmp_path / "stripes.ddlcn"


def test_round_trip(model, path, stripes):
    again = load_model(path)
    images = stripes[0][30:]
    assert np.array_equal(again.decision_function(images), model.decision_function(images))
    assert np.array_equal(again.predict_proba(images), model.predict_proba(images))
    assert np.array_equal(again.predict(images), model.predict(images))
    assert np.array_equal(again.predict(images, reject=True), model.predict(images, reject=True))
    assert again.predict(images).dtype == model.classes_.dtype
    ours, theirs = (m.get_params() for m in (again, model))
    assert {**ours, "features": None} == {**theirs, "features": None}


@pytest.mark.parametrize("svm", ["liblinear", "libsvm"])
def test_round_trip_of_numbers_as_labels(stripes, tmp_path, svm):
    labels = np.arange(30) % 2
    model = DDLCNClassifier(atoms_per_class=2, svm=svm, random_state=np.random.default_rng(0))
    model.fit(stripes[0][:30], labels).save(tmp_path / "m.ddlcn")
    again = load_model(tmp_path / "m.ddlcn")
    assert np.array_equal(again.decision_function(stripes[0]), model.decision_function(stripes[0]))
    assert again.predict(stripes[0]).dtype == labels.dtype


def test_round_trip_of_first_order(stripes, tmp_path):
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, first_order=8, n_neighbors=3, random_state=0)
    images, labels = stripes[0], stripes[1]
    model.fit(images, labels).save(tmp_path / "model.ddlcn")
    loaded = load_model(tmp_path / "model.ddlcn")
    np.testing.assert_array_equal(loaded.decision_function(images), model.decision_function(images))
    assert loaded.first_order_.floor == model.first_order_.floor


def test_round_trip_of_a_residual_network(stripes, tmp_path):
    model = DDLCNClassifier(
        n_layers=3, atoms_per_class=1, depth="residual", deep_atoms=(6, 4), n_neighbors=3, random_state=0
    )
    model.fit(stripes[0][:30], stripes[1][:30]).save(tmp_path / "m.ddlcn")
    again = load_model(tmp_path / "m.ddlcn")
    assert [len(layer) for layer in again.dictionaries_] == [3, 6, 4]
    assert np.array_equal(again.decision_function(stripes[0]), model.decision_function(stripes[0]))


def test_a_loaded_model_can_be_saved_and_fitted_again(path, tmp_path, stripes):
    again = load_model(path)
    again.save(tmp_path / "second.ddlcn")
    assert (tmp_path / "second.ddlcn").read_bytes() == path.read_bytes()
    assert again.fit(stripes[0][:30], stripes[1][:30]).score(stripes[0][30:], stripes[1][30:]) > 0.9


def test_a_truncated_file(path):
    content = path.read_bytes()
    for length in (0, 4, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"stripes\.ddlcn"):
            load_model(path)


def test_foreign_files(tmp_path):
    for content in (b"hello", b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(1000)):
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(ModelFileError, match="foreign"):
            load_model(tmp_path / "foreign")
    save_file({"a": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not a ddlcn model"):
        load_model(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError, match=r"absent\.ddlcn"):
        load_model(tmp_path / "absent.ddlcn")


def test_a_newer_format(path, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 0)
    with pytest.raises(ModelFileError, match="update ddlcn"):
        load_model(path)


def test_a_file_with_a_part_missing(path):
    arrays = load_file(path)
    _, header = model_file._read(path)
    del arrays["dictionary2"]
    header = {**header, "checksum": model_file._checksum(arrays, header)}
    save_file(arrays, path, {"ddlcn": json.dumps(header)})
    with pytest.raises(ModelFileError, match="not a complete"):
        load_model(path)


def test_an_altered_file(path):
    content = bytearray(path.read_bytes())
    for position in (-1, len(content) // 2, content.index(b"across")):
        altered = content.copy()
        altered[position] ^= 1
        path.write_bytes(altered)
        with pytest.raises(ModelFileError, match=r"stripes\.ddlcn was altered or damaged"):
            load_model(path)


def test_what_is_known_about_the_training_travels(model, path):
    again = load_model(path)
    assert again.card_ == model.card_ == {"images_per_class": [10, 10, 10]}


def test_a_crash_leaves_the_old_file(model, path, monkeypatch):
    before = path.read_bytes()

    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_foreign_features_are_refused(stripes, tmp_path):
    class Mine(DenseSIFT):
        pass

    class Other:
        def transform(self, images):
            return DenseSIFT().transform(images)

    model = DDLCNClassifier(atoms_per_class=2, features=Other()).fit(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="pickle"):
        model.save(tmp_path / "m.ddlcn")
    assert list(tmp_path.iterdir()) == []
    model = DDLCNClassifier(atoms_per_class=2, features=Mine()).fit(stripes[0][:9], stripes[1][:9])
    with pytest.raises(ValueError, match="pickle"):
        model.save(tmp_path / "m.ddlcn")


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        DDLCNClassifier().save(tmp_path / "m.ddlcn")


def test_others_may_read_the_file(path):
    """As any file that is written plainly: the umask decides, not the way through a temporary file."""
    plain = path.with_name("plain")
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("version", [1, 2])
def test_a_model_of_every_format_loads_and_decides_as_it_did(stripes, version):
    """Written when the format was new; the figures were printed then."""
    model = load_model(Path(__file__).parents[1] / "models" / f"format{version}.ddlcn")
    expected = [[0.78269, -0.9083, -0.85326], [-0.92619, 0.87481, -0.92671]]
    np.testing.assert_allclose(model.decision_function(stripes[0][30:32]), expected, atol=1e-4)
    assert model.score(stripes[0][30:], stripes[1][30:]) == 1.0
    np.testing.assert_allclose(model.predict_proba(stripes[0][30:32]).max(axis=1), 1.0, atol=1e-3)
    assert model.atom_labels_.tolist() == ["across", "across", "along", "along", "aslant", "aslant"]
    assert model.explain(stripes[0][30]).ranking[0] == "across"
    if version >= 2:
        assert model.calibrator_.find(1).threshold == pytest.approx(0.999999949107417)
        assert model.patches_.pixels.shape == (24, 32, 32)
        assert model.kept_.labels.tolist() == ["across", "along", "aslant"] * 2
