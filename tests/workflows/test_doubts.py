"""Pictures in the wrong folder: confident learning by hand, and moved digits found again."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier
from ddlcn.workflows.doubts import HeldOut, hold_out_all

# Class a is recognised easily, b hardly.
PROBABILITIES = np.array(
    [
        [0.9, 0.1, 0.0],
        [0.8, 0.2, 0.0],
        [0.1, 0.9, 0.0],  # in a, and as sure of b as b's own are
        [0.45, 0.5, 0.05],
        [0.55, 0.4, 0.05],  # in b; likelier a, but far less than a's own are
        [0.9, 0.1, 0.0],  # in b, as sure of a as a's own
        [np.nan, np.nan, np.nan],  # the only picture of c
    ]
)
LABELS = np.array(["a", "a", "a", "b", "b", "b", "c"])


def make(probabilities=PROBABILITIES, labels=LABELS):
    return HeldOut(np.array(["a", "b", "c"]), labels, probabilities)


def test_sure_is_what_is_as_likely_as_the_other_class_s_own():
    doubts = make().list_doubts()
    assert [(doubt.index, doubt.looks_like, doubt.is_sure) for doubt in doubts] == [
        (2, "b", True),
        (5, "a", True),
        (4, "a", False),
    ]
    assert (doubts[0].probability, doubts[0].own_probability) == (0.9, 0.1)


def test_margins_are_those_of_the_likeliest_other_class():
    margins = make().margins
    np.testing.assert_allclose(margins[:6], np.log([0.9 / 0.1, 4, 1 / 9, 0.5 / 0.45, 0.4 / 0.55, 1 / 9]))
    assert margins[6] == np.inf


def test_the_order_of_the_pictures_does_not_matter():
    order = np.random.default_rng(0).permutation(7)
    doubts = make(PROBABILITIES[order], LABELS[order]).list_doubts()
    assert {int(order[doubt.index]) for doubt in doubts} == {2, 4, 5}


def test_nobody_learns_from_what_he_is_asked_about(digit_folder, monkeypatch):
    paths = [path for path in sorted(digit_folder.glob("*/*.png")) if path.parent.name < "digit3"]
    labels, groups = np.array([path.parent.name for path in paths]), np.arange(len(paths)) // 2
    asked = np.zeros(len(paths), int)

    class Watched(DDLCNClassifier):
        def fit(self, images, y):
            self.learned = {item.place for item in images}
            return super().fit(images, y)

        def decision_function(self, images):
            places = [item.place for item in images]
            asked[places] += 1
            assert not set(groups[places]) & set(groups[sorted(self.learned)])
            return super().decision_function(images)

    found = hold_out_all(Watched(n_layers=1, atoms_per_class=1, random_state=0), paths, labels, groups)
    assert (asked == 1).all()
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("preset", ["fast"])
def test_moved_digits_are_found_first(digit_folder, preset):
    paths = [path for path in sorted(digit_folder.glob("*/*.png")) if path.parent.name < "digit6"]
    true = np.array([path.parent.name for path in paths])
    labels, rng = true.copy(), np.random.default_rng(0)
    moved = rng.choice(len(paths), 5, replace=False)
    for i in moved:
        labels[i] = rng.choice([name for name in np.unique(true) if name != true[i]])
    model = DDLCNClassifier.preset(preset, random_state=0)
    found = hold_out_all(model, paths, labels, np.arange(len(paths)))
    first = [doubt.index for doubt in found.list_doubts()][:5]
    assert len(set(first) & set(moved.tolist())) >= 4
    for doubt in found.list_doubts()[:3]:
        assert doubt.looks_like == true[doubt.index]
