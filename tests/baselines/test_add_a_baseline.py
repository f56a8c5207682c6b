"""The walk through `docs/add_a_baseline.md`: its code is run as it stands there."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

from ddlcn.baselines import registry as methods

GUIDE = Path(__file__).parents[2] / "docs" / "add_a_baseline.md"
BLOCKS = re.findall(r"```(?:python|text)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The class, from a module of its own: it must pickle."""
    (tmp_path / "means.py").write_text(BLOCKS[0])
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("means").NearestMean
    del sys.modules["means"]


@pytest.mark.filterwarnings("ignore")
def test_the_example_is_a_baseline(made, stripes):
    check_estimator(made())
    images, labels = stripes
    assert made().fit(images[:30], labels[:30]).predict(images[30:]).shape == (len(images) - 30,)


def test_the_lines_fit_their_files():
    home = Path(methods.__file__).parent
    assert re.fullmatch(r'    "\w+": "\w+",\n', BLOCKS[1])
    assert BLOCKS[1].split(":")[0].strip().strip('"') == "NearestMean"
    entry = eval(BLOCKS[2].strip().rstrip(","), {"Method": methods.Method})
    assert entry.made_by == "NearestMean"
    assert '    "CRC": "collaborative",\n' in (home / "__init__.py").read_text()


@pytest.mark.parametrize("name", re.findall(r"`(?:src/ddlcn/[\w/.]+|tests/[\w/.]+)`", GUIDE.read_text()))
def test_files_that_are_named_exist(name):
    path = GUIDE.parents[1] / name.strip("`")
    assert path.exists() or "means" in path.name
