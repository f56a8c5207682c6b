"""Predictions: what the classifier says, image by image, and a word about each that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import load_model
from ddlcn.workflows.predict import predict_each


@pytest.fixture(scope="module")
def model(digit_model):
    return load_model(digit_model)


def test_they_are_those_of_the_classifier(model, digit_folder):
    paths = sorted(digit_folder.glob("*/1*.png"))
    predictions = list(predict_each(model, ((str(path), path) for path in paths)))
    assert [p.name for p in predictions] == [str(path) for path in paths]
    assert [p.label for p in predictions] == model.predict(paths).tolist()
    assert [p.label if p.is_known else None for p in predictions] == model.predict(paths, reject=True).tolist()
    expected = model.predict_proba(paths)
    for prediction, row in zip(predictions, expected, strict=True):
        labels, probabilities = zip(*prediction.ranking, strict=True)
        assert sorted(labels) == sorted(model.classes_)
        np.testing.assert_allclose(probabilities, np.sort(row)[::-1], atol=1e-6)


def test_an_unreadable_image_is_told_and_the_others_are_judged(model, digit_folder, tmp_path):
    good = digit_folder / "digit1" / "11.png"
    broken = tmp_path / "broken.png"
    broken.write_bytes(good.read_bytes()[:40])
    predictions = list(predict_each(model, [("a", good), ("b", broken), ("c", tmp_path / "absent.png"), ("d", good)]))
    assert [bool(p.error) for p in predictions] == [False, True, True, False]
    assert "broken.png" in predictions[1].error
    assert (predictions[1].label, predictions[1].is_known, predictions[1].ranking) == (None, False, [])
    assert predictions[0].label == predictions[3].label == "digit1"


def test_a_stream_is_read_only_a_few_images_ahead(model, digit_folder):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield "again", digit_folder / "digit2" / "12.png"

    stream = predict_each(model, endless(), n_jobs=1)
    assert [next(stream).label for _ in range(3)] == ["digit2"] * 3
    assert len(taken) < 8
