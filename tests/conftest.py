"""Shared by all tests: tiny images, and the way to the real data sets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

REQUIRED = os.environ.get("DDLCN_REQUIRE_DATA") == "1"


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the data sets. Absent: the test is skipped, or fails where DDLCN_REQUIRE_DATA=1 (as in CI)."""
    named = os.environ.get("DDLCN_DATA", "")
    if named and Path(named).is_dir():
        return Path(named)
    message = "no data sets: set DDLCN_DATA to the folder that holds them"
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def stripes() -> tuple[np.ndarray, np.ndarray]:
    """60 noisy images (60, 32, 32) of three kinds of stripes, and their labels: easy, but not trivial."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :32]
    images, labels = [], []
    for i in range(60):
        kind = i % 3
        across = (x, y, x + y)[kind]
        wave = 0.5 + 0.4 * np.sin(across * rng.uniform(0.7, 0.9) + rng.uniform(0, 6))
        images.append(np.clip(wave + rng.normal(0, 0.1, wave.shape), 0, 1))
        labels.append(("across", "along", "aslant")[kind])
    return np.array(images), np.array(labels)
