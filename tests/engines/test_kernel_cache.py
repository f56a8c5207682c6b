"""Compiled kernels on disk: damaged files are compiled again, many may write at once, a full disk stops nobody."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ddlcn
from ddlcn.engines import compile as compiling
from ddlcn.engines.kernel_cache import _Files
from tests.engines.test_compile import run


def add_one(x):
    return x + 1


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(compiling.numba.config, "CACHE_DIR", "")
    return tmp_path


def test_a_kernel_is_found_again_by_its_types(own_cache):
    first = compiling.kernel(add_one)
    assert (first(1), first(np.float32(0.5))) == (2, 1.5)
    assert len(list(own_cache.rglob("*.nbc"))) == 2
    again = compiling.kernel(add_one)
    assert (again(1), again(np.float32(0.5)), again(np.float64(0.5))) == (2, 1.5, 1.5)
    assert sum(again.stats.cache_hits.values()) == 2
    assert sum(again.stats.cache_misses.values()) == 1


def test_damage_of_any_kind_is_as_if_nothing_were_there(tmp_path):
    files = _Files(str(tmp_path), "f", 1)
    files.save("key", {"code": b"x" * 1000})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[500] ^= 1  # still a pickle, of another program
    for damage in (b"", whole[:10], whole[:32], whole[:-1], whole[:500] + b"\0" * 500, b"\0" * 2000, bytes(flipped)):
        path.write_bytes(damage)
        assert files.load("key") is None
        files.save("key", {"code": b"x" * 1000})
        assert files.load("key") == {"code": b"x" * 1000}
    for other in (_Files(str(tmp_path), "f", 2), _Files(str(tmp_path), "g", 1)):
        assert other.load("key") is None
    files.flush()
    assert not list(tmp_path.iterdir())


def test_many_write_at_once_and_each_finds_its_own(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: _Files(str(tmp_path), "f", 1).save(i % 20, i % 20), range(200)))
    assert [_Files(str(tmp_path), "f", 1).load(i) for i in range(20)] == list(range(20))
    assert len(list(tmp_path.iterdir())) == 20


def test_a_full_disk_stops_nobody(own_cache, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert compiling.kernel(add_one)(1) == 2
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_without_any_folder_kernels_are_compiled_all_the_same(own_cache, monkeypatch):
    def fail(_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compiling, "KernelCache", fail)
    assert compiling.kernel(add_one)(1) == 2


def test_a_new_process_compiles_again_what_is_damaged(tmp_path):
    package = Path(ddlcn.__file__).parent.parent
    assert run(package, tmp_path).stderr.count("compiling") == 1
    whole = {path: path.read_bytes() for path in (tmp_path / "ddlcn").rglob("*.nbc")}
    for i, (path, content) in enumerate(sorted(whole.items())):
        path.write_bytes(content[: len(content) // 2] if i % 2 else b"garbage")
    mended = run(package, tmp_path)
    assert (mended.stdout, mended.stderr.count("compiling")) == ("1\n", 1)
    assert run(package, tmp_path).stderr == ""
    assert {path.name for path in (tmp_path / "ddlcn").rglob("*") if path.is_file()} == {path.name for path in whole}
