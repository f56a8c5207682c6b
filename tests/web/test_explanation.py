"""The page about one image."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from ddlcn import DDLCNClassifier, load_model
from ddlcn.web.explanation import explain_image, render_explanation


@pytest.fixture(scope="module")
def model(digit_model):
    return load_model(digit_model)


@pytest.fixture(scope="module")
def page(model, digit_folder):
    return render_explanation(model, digit_folder / "digit2" / "12.png", "<b>two</b>.png")


def test_it_says_who_wins_and_who_comes_second(page, model, digit_folder):
    ranking = model.explain(digit_folder / "digit2" / "12.png").ranking
    assert f"<h1>{ranking[0]}, " in page
    assert f"runner-up: {ranking[1]}" in page


def test_it_stands_alone_and_escapes(page):
    assert "&lt;b&gt;two&lt;/b&gt;.png" in page
    assert "<b>two" not in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    HTMLParser().feed(page)


def test_the_numbers_are_those_of_the_explanation(model, digit_folder):
    path = digit_folder / "digit1" / "13.png"
    shown, explanation = explain_image(model, path), model.explain(path)
    for side, label in zip(shown["sides"], explanation.ranking[:2], strict=True):
        assert side["label"] == label
        assert side["from_image"] + side["intercept"] == pytest.approx(side["score"], abs=1e-9)
        assert side["from_image"] == pytest.approx(explanation.of(label).sum())
        shares = [share.contribution for share in explanation.top_atoms(label, 6)]
        assert [atom["contribution"] for atom in side["atoms"]] == shares
        assert all(atom["near"] == [] for atom in side["atoms"])


def test_training_patches_are_shown_where_they_were_kept(digit_folder):
    paths = sorted(digit_folder.glob("digit[0-3]/0*.png"))
    keeping = DDLCNClassifier.preset("fast", keep_patches=True, random_state=0)
    keeping.fit(paths, [path.parent.name for path in paths])
    page = render_explanation(keeping, digit_folder / "digit2" / "12.png", "two")
    assert "training patches nearest to the atom" in page


def test_an_unreadable_picture_is_an_error_in_words(model, tmp_path):
    (tmp_path / "x.png").write_text("no")
    with pytest.raises(ValueError, match=r"x\.png"):
        render_explanation(model, tmp_path / "x.png", "x")
