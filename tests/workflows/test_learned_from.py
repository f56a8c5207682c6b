"""A model knows the files that it learned from, and says so when it is measured on them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, load_model
from ddlcn.workflows.evaluate import evaluate
from ddlcn.workflows.learned_from import count_learned, digest_files
from ddlcn.workflows.update import expand, update


def list_some(folder, part):
    paths = [path for path in sorted(folder.glob("*/*.png")) if path.parent.name < "digit3"]
    return paths[part], np.array([path.parent.name for path in paths[part]])


def test_the_same_bytes_are_the_same_picture_whatever_they_are_called(tmp_path, digit_folder):
    first, second = sorted((digit_folder / "digit0").iterdir())[:2]
    shutil.copy(first, tmp_path / "renamed.png")
    digests = digest_files([first, str(second), tmp_path / "renamed.png", np.zeros((9, 9)), tmp_path / "absent.png"])
    assert len(digests) == 3
    assert digests[0] == digests[2] != digests[1]
    assert count_learned({"files": digests[:1]}, [first, second]) == 1
    assert count_learned({}, [first]) == 0


@pytest.fixture
def trained(digit_folder):
    paths, labels = list_some(digit_folder, slice(0, None, 4))
    model = DDLCNClassifier(n_layers=1, atoms_per_class=1, keep_features=True, random_state=0).fit(paths, labels)
    model.card_["files"] = digest_files(paths)
    return model, paths, labels


def test_measured_on_its_own_pictures_it_says_so(trained):
    model, paths, labels = trained
    found = evaluate(model, paths, labels)
    assert found.n_learned == len(paths)
    assert f"learned from {len(paths)} of these {len(paths)} pictures" in found.remark


def test_measured_on_others_it_says_nothing(trained, digit_folder):
    others = evaluate(trained[0], *list_some(digit_folder, slice(1, None, 4)))
    assert (others.n_learned, others.remark) == (0, "")


@pytest.mark.parametrize("change", [update, expand])
def test_added_pictures_are_known_too(trained, digit_folder, tmp_path, change):
    model, old, _ = trained
    paths, labels = list_some(digit_folder, slice(1, None, 4))
    changed = change(model, paths, labels)
    assert count_learned(changed.card_, paths) == len(paths)
    assert count_learned(changed.card_, old) == (len(old) if change is update else 0)  # expand wants all, and had none
    changed.save(tmp_path / "m.ddlcn")
    assert load_model(tmp_path / "m.ddlcn").card_["files"] == changed.card_["files"]
