"""Networks so small that a test can say what they must give."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

N_CHANNELS = 6


def make_tiny(side=None, n_images="n", hostile=None, dtype=np.float32):
    """Images (n, 3, H, W) -> conv 4 x 4, stride 4 ("conv") -> relu ("relu") -> mean over positions -> "scores" (n, 2).

    Only "scores" is an output. `hostile`: "external" puts the weights into another file, "constant" hides such a
    reference in a constant inside a branch.
    """
    rng = np.random.default_rng(0)
    kernel = numpy_helper.from_array(rng.normal(0, 0.2, (N_CHANNELS, 3, 4, 4)).astype(dtype), "kernel")
    weights = [kernel, numpy_helper.from_array(rng.normal(size=(N_CHANNELS, 2)).astype(dtype), "dense")]
    nodes = [
        helper.make_node("Conv", ["images", "kernel"], ["conv"], name="first", strides=[4, 4], kernel_shape=[4, 4]),
        helper.make_node("Relu", ["conv"], ["relu"], name="second"),
        helper.make_node("GlobalAveragePool", ["relu"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "dense"], ["scores"]),
    ]
    if hostile == "external":
        refer(kernel, "/etc/hostname")
    if hostile == "constant":
        hidden = numpy_helper.from_array(np.zeros(2, np.float32), "hidden")
        refer(hidden, "../../secret")
        inner = helper.make_graph(
            [helper.make_node("Constant", [], ["c"], value=hidden)],
            "branch", [], [helper.make_tensor_value_info("c", TensorProto.FLOAT, [2])],
        )  # fmt: skip
        weights.append(numpy_helper.from_array(np.array(True), "yes"))
        nodes.append(helper.make_node("If", ["yes"], ["unused"], then_branch=inner, else_branch=inner))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [n_images, 3, side or "h", side or "w"])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [n_images, 2])
    graph = helper.make_graph(nodes, "tiny", [images], [scores], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def refer(tensor, location):
    """Make a tensor say that its values lie in a file."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location


def write_tiny(path, **how):
    path.write_bytes(make_tiny(**how).SerializeToString())
    return path


def convolve(picture):
    """What "relu" must be of a picture (H, W, 3) of bytes, by loops: (channels, H / 4, W / 4)."""
    kernel = np.random.default_rng(0).normal(0, 0.2, (N_CHANNELS, 3, 4, 4)).astype(np.float32)
    mean, deviation = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
    x = ((picture - mean) / deviation).transpose(2, 0, 1)
    height, width = x.shape[1] // 4, x.shape[2] // 4
    found = np.empty((N_CHANNELS, height, width))
    for i in range(height):
        for j in range(width):
            patch = x[:, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
            found[:, i, j] = (kernel * patch).sum(axis=(1, 2, 3))
    return np.maximum(found, 0)
