"""The page about a model on a folder."""

from __future__ import annotations

import re

import pytest

from ddlcn import DDLCNClassifier, load_model
from ddlcn.web.evaluation import render_evaluation
from ddlcn.workflows.evaluate import evaluate


@pytest.fixture(scope="module")
def evaluated(digit_model, digit_folder):
    """Two pictures get wrong labels, so that there are mistakes; one class is unknown, one file unreadable."""
    model = load_model(digit_model)
    paths = sorted(digit_folder.glob("*/1*.png"))
    labels = [path.parent.name for path in paths]
    labels[0], labels[1] = "digit1", "digit2"
    return model, evaluate(model, paths, labels, [("<gone>.png", "cannot read <gone>.png")])


def test_it_shows_what_was_counted(evaluated):
    model, evaluation = evaluated
    images = [p.name for p in evaluation.predictions]
    page = render_evaluation(model, evaluation, images, "digits.ddlcn", "a folder")
    assert f"<h1>{100 * evaluation.result.accuracy:.1f} % recognised</h1>" in page
    assert f"{evaluation.calibration_error:.3f}" in page
    assert f"<dd>{evaluation.area_for_unknown:.2f}</dd>" in page
    assert "digit1, predicted as digit0" in page
    assert page.count('class="glyph"') == 16  # four atoms of each of four classes
    assert len(re.findall(r'<td class="(right|wrong)"', page)) == 16
    assert "cannot read &lt;gone&gt;.png" in page


def test_atoms_that_all_classes_share(digit_folder):
    """Under each class those that speak for it, with the patches nearest to them."""
    paths = sorted(digit_folder.glob("*/0*.png"))
    labels = [path.parent.name for path in paths]
    model = DDLCNClassifier.preset("aligned", random_state=0, shared_atoms=20, keep_patches=True).fit(paths, labels)
    page = render_evaluation(model, evaluate(model, paths, labels, []), paths, "m", "f")
    assert page.count('class="glyph"') == 4 * len(model.classes_)
    assert page.count('class="patch"') == 3 * 4 * len(model.classes_)
    assert "All classes share them" in page


def test_it_stands_alone(evaluated):
    model, evaluation = evaluated
    page = render_evaluation(model, evaluation, [p.name for p in evaluation.predictions], "m", "f")
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
