"""Shared by all tests: tiny images, and the way to the real data sets."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from ddlcn import DDLCNClassifier

# Tests may import onnxruntime before ddlcn does, which would turn its telemetry off.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

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


@pytest.fixture(scope="session")
def digit_folder(tmp_path_factory) -> Path:
    """A data set that is always there: five of scikit-learn's digits, 16 pictures of 32 x 32 each, as PNG files."""
    folder = tmp_path_factory.mktemp("digits")
    digits = load_digits()
    for digit in range(5):
        (folder / f"digit{digit}").mkdir()
        for i, image in enumerate(digits.images[digits.target == digit][:16]):
            picture = Image.fromarray((image * 15.9).astype("uint8")).resize((32, 32), Image.Resampling.BICUBIC)
            picture.save(folder / f"digit{digit}" / f"{i:02}.png")
    return folder


@pytest.fixture(scope="session")
def digit_model(digit_folder, tmp_path_factory) -> Path:
    """A model file: digits 0 to 3, the first ten pictures of each."""
    paths = [path for path in sorted(digit_folder.glob("*/*.png")) if path.parent.name < "digit4" and path.name < "10"]
    model = DDLCNClassifier.preset("fast", random_state=0).fit(paths, [path.parent.name for path in paths])
    file = tmp_path_factory.mktemp("model") / "digits.ddlcn"
    model.save(file)
    return file


@pytest.fixture(scope="session")
def chromium() -> str:
    """The system's browser. Absent: the test is skipped, or fails where DDLCN_REQUIRE_BROWSER=1 (as in CI)."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if os.environ.get("DDLCN_REQUIRE_BROWSER") == "1":
            pytest.fail("DDLCN_REQUIRE_BROWSER=1, but there is no chromium: apt-get install chromium")
        pytest.skip("no chromium here")
    return found


@pytest.fixture(scope="session")
def browser(chromium) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def run_server(model: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`ddlcn serve` as a process of its own, and its address; at the end it is asked to stop, and must, quietly."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ddlcn", "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/health").read()
                break
            except OSError:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
        yield address, process
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert "Traceback" not in errors
