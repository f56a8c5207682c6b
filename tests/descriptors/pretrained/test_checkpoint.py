"""Reading a torch checkpoint: the same tensors, and nothing that the file says is run."""

from __future__ import annotations

import collections
import io
import os
import pickle
import struct
import sys
import types

import numpy as np
import pytest

from ddlcn.descriptors.pretrained import WEIGHTS
from ddlcn.descriptors.pretrained.checkpoint import MAGIC, PROTOCOL, CheckpointError, read_checkpoint


class _Storage:
    """What a pickle of torch refers to from outside."""

    def __init__(self, key, values):
        self.key, self.values = key, values


class _Tensor:
    def __init__(self, storage, offset, shape, strides):
        self.parts = (storage, offset, shape, strides)

    def __reduce__(self):
        utils = sys.modules["torch._utils"]
        return utils._rebuild_tensor_v2, (*self.parts, False, collections.OrderedDict())


@pytest.fixture
def fake_torch(monkeypatch):
    """Enough of torch's names to write a checkpoint without it."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    class FloatStorage:
        pass

    def _rebuild_tensor_v2():
        raise AssertionError("never called")

    for thing, module in ((FloatStorage, "torch"), (_rebuild_tensor_v2, "torch._utils")):
        thing.__module__, thing.__qualname__ = module, thing.__name__
    torch.FloatStorage, utils._rebuild_tensor_v2, torch._utils = FloatStorage, _rebuild_tensor_v2, utils
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return torch


def write(path, torch, tensors, storages, n_said=None):
    """A checkpoint in the old format; `n_said`: a number of elements that is a lie."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if isinstance(thing, _Storage):
                return ("storage", torch.FloatStorage, thing.key, "cpu", n_said or len(thing.values), None)
            return None

    file = io.BytesIO()
    for each in (MAGIC, PROTOCOL, {"little_endian": True, "protocol_version": PROTOCOL, "type_sizes": {}}):
        pickle.dump(each, file, protocol=2)
    Pickler(file, protocol=2).dump(tensors)
    pickle.dump([storage.key for storage in storages], file, protocol=2)
    for storage in storages:
        file.write(struct.pack("<q", len(storage.values)) + storage.values.tobytes())
    path.write_bytes(file.getvalue())
    return path


def test_tensors_are_read_with_their_strides_and_offsets(tmp_path, fake_torch):
    values = np.arange(12, dtype=np.float32)
    storage = _Storage("1", values)
    tensors = collections.OrderedDict(
        whole=_Tensor(storage, 0, (3, 4), (4, 1)), turned=_Tensor(storage, 0, (4, 3), (1, 4)),
        tail=_Tensor(storage, 10, (2,), (1,)), one=_Tensor(storage, 5, (), ()),
    )  # fmt: skip
    read = read_checkpoint(write(tmp_path / "a.pth", fake_torch, tensors, [storage]))
    assert list(read) == ["whole", "turned", "tail", "one"]
    np.testing.assert_array_equal(read["whole"], values.reshape(3, 4))
    np.testing.assert_array_equal(read["turned"], values.reshape(3, 4).T)
    np.testing.assert_array_equal(read["tail"], [10, 11])
    assert read["one"] == 5


def test_nothing_but_tensors_is_made(tmp_path, fake_torch):
    mark = tmp_path / "was-run"

    class Hostile:
        def __reduce__(self):
            return os.system, (f"touch {mark}",)

    path = write(tmp_path / "a.pth", fake_torch, {"x": Hostile()}, [])
    with pytest.raises(CheckpointError, match=r"asks for .*system, and only tensors"):
        read_checkpoint(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(10, (3,), (1,)), (0, (3, 5), (5, 1)), (0, (2,), (-1,)), (-1, (2,), (1,)), (0, (13,), (1,))],
)
def test_a_tensor_beyond_its_storage_is_refused(tmp_path, fake_torch, offset, shape, strides):
    storage = _Storage("1", np.arange(12, dtype=np.float32))
    path = write(tmp_path / "a.pth", fake_torch, {"x": _Tensor(storage, offset, shape, strides)}, [storage])
    with pytest.raises(CheckpointError, match="beyond its storage"):
        read_checkpoint(path)


def test_a_storage_that_cannot_be_in_the_file_takes_no_memory(tmp_path, fake_torch):
    storage = _Storage("1", np.arange(12, dtype=np.float32))
    path = write(tmp_path / "a.pth", fake_torch, {"x": _Tensor(storage, 0, (2,), (1,))}, [storage], n_said=10**15)
    with pytest.raises(CheckpointError, match="does not fit"):
        read_checkpoint(path)


def test_damaged_files_are_refused_by_name(tmp_path, fake_torch):
    storage = _Storage("1", np.arange(12, dtype=np.float32))
    path = write(tmp_path / "whole.pth", fake_torch, {"x": _Tensor(storage, 0, (2,), (1,))}, [storage])
    content = path.read_bytes()
    for n in (0, 5, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.pth").write_bytes(content[:n])
        with pytest.raises(CheckpointError, match=r"cut\.pth"):
            read_checkpoint(tmp_path / "cut.pth")
    (tmp_path / "other.pth").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(CheckpointError, match="does not begin as one"):
        read_checkpoint(tmp_path / "other.pth")


def test_the_packaged_weights_are_all_read():
    pytest.importorskip(WEIGHTS)
    from ddlcn.descriptors.pretrained.efficientnet import find_weights

    tensors = read_checkpoint(find_weights())
    assert len(tensors) == 296
    assert tensors["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert tensors["_fc.weight"].shape == (1000, 1280)
    assert all(np.isfinite(tensor).all() for tensor in tensors.values())
    assert sum(t.size for n, t in tensors.items() if "running" not in n and "num_batches" not in n) == 4_652_008
