"""What must stay: predictions of every preset, and of a model file of each format, as ddlcn 0.1.0 made them.

`models/pinned.json` holds the labels that the code before the house was rebuilt gave (commit 32d373e).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ddlcn import DDLCNClassifier, DenseSIFT, load_model

MODELS = Path(__file__).parent / "models"
PINNED = json.loads((MODELS / "pinned.json").read_text())
# Training images and test images are few, so a tie may fall to the other side on another processor.
MAY_DIFFER = 2


def predict_digits(model: DDLCNClassifier, n_test: int) -> str:
    digits = load_digits()
    images, labels = digits.images / 16.0, digits.target
    train = np.concatenate([np.flatnonzero(labels == c)[:8] for c in range(10)])
    test = np.setdiff1d(np.arange(len(labels)), train)[:n_test]
    return "".join(map(str, model.fit(images[train], labels[train]).predict(images[test]).tolist()))


@pytest.mark.parametrize("preset", ["paper", "fast", "accurate"])
def test_presets(preset):
    changes = {"features": DenseSIFT(min_side=48)} if preset == "paper" else {}
    found = predict_digits(DDLCNClassifier.preset(preset, random_state=0, **changes), len(PINNED[preset]))
    assert sum(a != b for a, b in zip(found, PINNED[preset], strict=True)) <= MAY_DIFFER


@pytest.mark.parametrize("features", ["cnn", "sift+cnn"])
def test_presets_on_a_backbone(features):
    pytest.importorskip("onnxruntime")
    kinds = features.split("+") if "+" in features else features
    expected = PINNED[f"fast {features}"]
    found = predict_digits(DDLCNClassifier.preset("fast", features=kinds, random_state=0), len(expected))
    assert sum(a != b for a, b in zip(found, expected, strict=True)) <= MAY_DIFFER


def test_a_file_of_format_3_with_two_kinds_of_descriptors(stripes):
    model = load_model(MODELS / "format3.ddlcn")
    assert model.predict(stripes[0]).tolist() == PINNED["format3"]
    np.testing.assert_allclose(model.predict_proba(stripes[0]), PINNED["format3_proba"], atol=2e-5)
