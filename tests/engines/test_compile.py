"""Compiled code: cached outside the installation, announced once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import ddlcn

# A little of everything would take a minute to compile; SIFT alone takes seconds.
CODE = "import numpy as np, ddlcn; print(len(ddlcn.DenseSIFT().transform(np.random.rand(1, 20, 20))[0]))"


def run(package: Path, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(package), "XDG_CACHE_HOME": str(cache), **environment}
    env.pop("NUMBA_CACHE_DIR", None)
    return subprocess.run(
        [sys.executable, "-P", "-B", "-c", CODE], capture_output=True, text=True, check=True, env=env, cwd=cache
    )


def test_a_read_only_installation_compiles_once_and_says_so(tmp_path):
    package, cache = tmp_path / "site", tmp_path / "cache"
    shutil.copytree(Path(ddlcn.__file__).parent, package / "ddlcn", ignore=shutil.ignore_patterns("__pycache__"))
    cache.mkdir()
    for folder in [package, *package.rglob("*")]:
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    before = sorted(package.rglob("*"))
    first, second = run(package, cache), run(package, cache)
    assert first.stdout == second.stdout == "1\n"
    assert first.stderr.count("compiling") == 1
    assert second.stderr == ""
    assert sorted(package.rglob("*")) == before  # nothing was written there (root may, so permissions do not show it)
    assert list((cache / "ddlcn").rglob("*.nbc"))
    for folder in [package, *package.rglob("*")]:
        folder.chmod(0o755)


def test_without_a_writable_cache_it_still_works(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    env.pop("NUMBA_CACHE_DIR", None)
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env)
    assert result.stdout == "1\n"
    assert list((tmp_path / "tmp").rglob("*.nbc"))


def test_a_change_in_any_kernel_file_changes_the_cache_folder(tmp_path, monkeypatch):
    from ddlcn.engines import compile as compiling

    folder = tmp_path / "engines"
    shutil.copytree(Path(compiling.__file__).parent, folder)
    monkeypatch.setattr(compiling, "__file__", str(folder / "compile.py"))
    before = compiling._sources_digest()
    assert before == compiling._sources_digest()
    with (folder / "cpu" / "nearest.py").open("a") as file:
        file.write("# changed\n")
    assert compiling._sources_digest() != before


def test_the_clock_stands_still_while_kernels_are_compiled():
    import numba

    from ddlcn.engines.compile import clock

    @numba.njit
    def inner(x):
        return np.cumsum(x).sum()

    @numba.njit
    def outer(x):
        return inner(x) + inner(x.astype(np.float32))

    numbers = np.arange(5.0)
    spent, by_clock = time.perf_counter(), clock()
    outer(numbers)
    spent, by_clock = time.perf_counter() - spent, clock() - by_clock
    assert spent > 0.05  # it was compiled, and with it both forms of the inner one: counted once, not twice
    assert 0 <= by_clock < 0.5 * spent
    begin = clock()
    time.sleep(0.02)
    assert clock() - begin >= 0.02
