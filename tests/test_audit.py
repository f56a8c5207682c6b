"""The audit in `make lint`: a hole that is mended fails, one that is not is told, and no data is no verdict."""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "audit.py"
FINE = {"name": "fine", "version": "1", "vulns": []}
ODD = {"name": "odd", "skip_reason": "not found on PyPI"}
MENDED = {"name": "old", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
OPEN = {"name": "new", "version": "1", "vulns": [{"id": "CVE-2", "fix_versions": []}]}


@pytest.mark.parametrize(
    ("packages", "failed", "said"),
    [
        ([FINE, ODD], False, "1 packages looked up, 0 holes known; 1 not looked up"),
        ([ODD], False, "skipped, the package index here"),
        ([], False, "skipped, the package index here"),
        ([FINE, MENDED], True, "old 1 has CVE-1, mended in 2"),
        ([OPEN], False, "new 1 has CVE-2, not mended yet"),
        ([OPEN, MENDED], True, "2 packages looked up, 2 holes known; 0 not looked up"),
    ],
)
def test_the_verdict(packages, failed, said):
    lines, found = runpy.run_path(str(SCRIPT))["judge"]({"dependencies": packages})
    assert found is failed
    assert said in "\n".join(lines)


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (subprocess.CompletedProcess([], 0, json.dumps({"dependencies": [FINE]}), ""), 0, "1 packages looked up"),
        (subprocess.CompletedProcess([], 1, json.dumps({"dependencies": [MENDED]}), ""), 1, "CVE-1"),
        (
            subprocess.CompletedProcess([], 1, "", "Traceback\nConnectionError: no route"),
            0,
            "reach its data (Connection",
        ),
        (subprocess.TimeoutExpired("pip-audit", 60), 0, "skipped, no answer within 60 seconds"),
    ],
)
def test_without_data_it_says_so_and_does_not_fail(monkeypatch, capsys, outcome, code, said):
    def answer(*_, **__):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(subprocess, "run", answer)
    assert runpy.run_path(str(SCRIPT))["main"]() == code
    assert said in capsys.readouterr().out
