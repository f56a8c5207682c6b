"""The packaged network is built once, whoever asks at once, and the state of the cache never stops a user."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("onnxruntime")

from ddlcn.descriptors.pretrained import WEIGHTS, efficientnet, packaged
from ddlcn.descriptors.pretrained.backbones import NetworkError, hash_network, open_network

pytest.importorskip(WEIGHTS)

# Eight threads open the network at the same moment; prints a hash of what each of them gets from it.
CODE = """
import hashlib, threading
from concurrent.futures import ThreadPoolExecutor
from ddlcn.descriptors.pretrained.backbones import open_network
from ddlcn.descriptors.pretrained.packaged import make_known_image

start = threading.Barrier(8)

def work(_):
    start.wait()
    network = open_network("efficientnet-lite0", None)
    return hashlib.sha256(network.run(make_known_image() / 255)[0].tobytes()).hexdigest()

with ThreadPoolExecutor(8) as pool:
    print(*pool.map(work, range(8)))
"""


@pytest.fixture
def count_builds(monkeypatch):
    """How often the network was built: a list with an entry each time."""
    builds, build = [], efficientnet.build_efficientnet

    def counted(weights):
        builds.append(weights)
        return build(weights)

    monkeypatch.setattr(efficientnet, "build_efficientnet", counted)
    return builds


def test_two_processes_of_eight_threads_open_it_at_once(tmp_path):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", CODE]
    pair = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    answers = [process.communicate(timeout=120) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], answers
    outputs = [output for answer, _ in answers for output in answer.split()]
    assert len(outputs) == 16
    assert len(set(outputs)) == 1
    assert [error for _, error in answers] == [b"", b""]
    assert len(list((tmp_path / "ddlcn/networks").iterdir())) == 1  # no temporary file is left


def test_threads_build_it_once(own_cache, count_builds):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: open_network("efficientnet-lite0", f"block{i}"), range(8)))
    assert len(count_builds) == 1


def test_a_damaged_file_is_built_again_and_a_good_one_is_not(own_cache, count_builds):
    sha256 = hash_network("efficientnet-lite0")
    content = packaged.load_or_build(sha256)
    path = packaged.find_place(sha256)
    whole = path.read_bytes()
    for damage in (b"", whole[:20], whole[:1000], whole[:-1], whole[:-4] + b"\0\0\0\0", b"\0" * len(whole)):
        path.write_bytes(damage)
        assert packaged.load_or_build(sha256) == content
        assert path.read_bytes() == whole
    assert len(count_builds) == 7
    assert packaged.load_or_build(sha256) == content
    assert len(count_builds) == 7


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(own_cache, count_builds):
    own_cache.write_text("a file where the folder should be: root may write anywhere else")
    with pytest.warns(UserWarning, match=r"cannot be kept .*networks.*it works") as warned:
        open_network("efficientnet-lite0", None)
    open_network("efficientnet-lite0", "block10")
    assert len(warned) == len(count_builds) == 1


def test_a_full_disk_costs_time_and_nothing_else(own_cache, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.warns(UserWarning, match="No space left on device"):
        open_network("efficientnet-lite0", None)
    assert not list((own_cache / "networks").iterdir())


def test_a_network_that_gives_other_numbers_is_not_kept(own_cache, monkeypatch):
    monkeypatch.setattr(packaged, "KNOWN_TOP", ((0, 99.0),))
    with pytest.raises(NetworkError, match=r"output 0 on a known picture .*99\.000 is right"):
        open_network("efficientnet-lite0", None)
    assert not own_cache.exists()
