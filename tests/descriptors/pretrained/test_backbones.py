"""Networks ready to run: the packaged one is right, others are checked."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from onnx import numpy_helper

from ddlcn.descriptors.pretrained import WEIGHTS, efficientnet, packaged
from ddlcn.descriptors.pretrained.backbones import NetworkError, open_network
from tests.descriptors.pretrained.tiny import convolve, make_tiny, write_tiny


def test_the_packaged_network_gives_what_torch_gives(own_cache):
    pytest.importorskip(WEIGHTS)
    network = open_network("efficientnet-lite0", None)  # building it checks the known output
    x = (packaged.make_known_image() - network.mean[:, None, None]) / network.scale[:, None, None]
    found, responses = network.run(x)
    assert (network.layer, found.shape, responses.shape) == ("block15", (320, 7, 7), (1280, 7, 7))
    assert responses.min() >= 0
    assert responses.max() <= 6
    assert open_network("efficientnet-lite0", "block10").run(x)[0].shape == (112, 14, 14)
    with pytest.raises(NetworkError, match=r"no layer 'block16'; it has block0, .*head"):
        open_network("efficientnet-lite0", "block16")


def test_the_packaged_network_equals_torch_layer_by_layer(own_cache):
    """A second, obvious forward pass with torch's own operations, normalisations not folded."""
    pytest.importorskip(WEIGHTS)
    torch = pytest.importorskip("torch")
    from torch.nn.functional import batch_norm, conv2d, pad, relu6

    weights = torch.load(efficientnet.find_weights(), weights_only=True, map_location="cpu")

    def convolve(x, name, norm, stride=1):
        kernel = weights[f"{name}.weight"]
        total = max((-(-x.shape[-1] // stride) - 1) * stride + kernel.shape[-1] - x.shape[-1], 0)
        x = pad(x, (total // 2, total - total // 2) * 2)  # as TensorFlow's "same": more on the right
        x = conv2d(x, kernel, stride=stride, groups=len(kernel) if kernel.shape[1] == 1 else 1)
        statistics = [weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return batch_norm(x, *statistics, eps=efficientnet.EPSILON)

    images = np.random.default_rng(0).normal(size=(1, 3, 96, 96)).astype(np.float32)
    x = relu6(convolve(torch.from_numpy(images), "_conv_stem", "_bn0", 2))
    for i in range(16):
        block, start = f"_blocks.{i}", x
        if f"{block}._expand_conv.weight" in weights:
            x = relu6(convolve(x, f"{block}._expand_conv", f"{block}._bn0"))
        x = relu6(convolve(x, f"{block}._depthwise_conv", f"{block}._bn1", 2 if i in (1, 3, 5, 11) else 1))
        x = convolve(x, f"{block}._project_conv", f"{block}._bn2")
        x = x + start if x.shape == start.shape else x
        if i in (0, 2, 10, 15):
            ours, _ = open_network("efficientnet-lite0", f"block{i}").run(images)
            np.testing.assert_allclose(ours, x[0].numpy(), rtol=1e-3, atol=1e-4)


def test_an_onnx_file_gives_its_map(tmp_path):
    network = open_network(write_tiny(tmp_path / "tiny.onnx"), None)
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.float32)
    x = ((picture - network.mean) / network.scale).transpose(2, 0, 1)[None]
    found, responses = network.run(np.ascontiguousarray(x))
    np.testing.assert_allclose(found, convolve(picture), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(responses, np.maximum(found, 0))
    assert (network.side, network.layer) == (None, "relu")
    assert open_network(write_tiny(tmp_path / "fixed.onnx", side=48), None).side == 48


def test_a_file_that_was_replaced_is_opened_anew(tmp_path):
    path = write_tiny(tmp_path / "a.onnx")
    before = open_network(path, None)
    write_tiny(path, side=48)
    after = open_network(path, None)
    assert before.sha256 != after.sha256
    assert after.side == 48


def test_a_network_that_fails_when_run_says_so(tmp_path):
    model = make_tiny()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((6, 5, 4, 4), np.float32), "kernel"))
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(NetworkError, match=r"a\.onnx cannot"):
        open_network(tmp_path / "a.onnx", None).run(np.zeros((1, 3, 32, 32), np.float32))
    poisoned = make_tiny()
    poisoned.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((6, 3, 4, 4), np.nan, np.float32), "kernel"))
    (tmp_path / "b.onnx").write_bytes(poisoned.SerializeToString())
    with pytest.raises(NetworkError, match="not finite"):
        open_network(tmp_path / "b.onnx", "conv").run(np.zeros((1, 3, 32, 32), np.float32))


def test_what_is_no_network_is_refused():
    with pytest.raises(ValueError, match=r"network must be 'efficientnet-lite0'"):
        open_network(3, None)
    with pytest.raises(FileNotFoundError, match="missing"):
        open_network("missing.onnx", None)


def test_a_torch_module_is_a_network():
    torch = pytest.importorskip("torch")
    module = torch.nn.Conv2d(3, 5, 4, stride=4)
    network = open_network(module, None)
    found, responses = network.run(np.zeros((1, 3, 32, 32), np.float32))
    assert found.shape == (5, 8, 8)
    np.testing.assert_allclose(found[:, 0, 0], module.bias.detach().numpy(), rtol=1e-5)
    assert responses.min() >= 0
    with pytest.raises(NetworkError, match="where a map"):
        open_network(torch.nn.Flatten(), None).run(np.zeros((1, 3, 32, 32), np.float32))
