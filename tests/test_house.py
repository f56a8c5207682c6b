"""The shape of the house: what a newcomer finds at the door, and what can be read in one sitting."""

from __future__ import annotations

import inspect
from pathlib import Path

import ddlcn
from ddlcn.learning import learn_branch

SOURCE = Path(ddlcn.__file__).parent


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_few_modules_lie_at_the_root():
    public = [path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("_")]
    assert len(public) <= 8, sorted(public)


def test_the_story_is_read_in_one_sitting():
    lines = sum(count_lines(SOURCE / name) for name in ("classifier.py", "encoder.py"))
    assert lines + len(inspect.getsource(learn_branch).splitlines()) < 500


def test_files_stay_short():
    """The longest today has 333 lines; nobody should need to scroll much further."""
    long = {str(path.relative_to(SOURCE)): n for path in SOURCE.rglob("*.py") if (n := count_lines(path)) > 340}
    assert not long


def test_every_public_name_is_there_and_loads_when_used():
    assert {"DDLCNClassifier", "DDLCNEncoder", "DenseSIFT", "encode", "learn_dictionary", "load_model"} <= set(
        ddlcn.__all__
    )
    for name in ddlcn.__all__:
        assert getattr(ddlcn, name) is not None
