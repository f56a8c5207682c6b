"""ONNX files from anywhere: the map is found, and what reaches outside the file, or fits nothing, is refused."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from ddlcn.descriptors.pretrained.onnx_file import NetworkError, find_input, pick_map, read_onnx  # noqa: E402
from tests.descriptors.pretrained.tiny import make_tiny, write_tiny  # noqa: E402


@pytest.mark.parametrize(
    ("layer", "meant"), [(None, "relu"), ("conv", "conv"), ("relu", "relu"), ("first", "conv"), ("second", "relu")]
)
def test_a_map_is_picked_by_value_or_by_operation_and_else_the_last(tmp_path, layer, meant):
    content, picked = pick_map(read_onnx(write_tiny(tmp_path / "a.onnx")), layer, "a")
    assert picked == meant
    assert meant in [value.name for value in onnx.load_from_string(content).graph.output]


def test_a_map_that_is_an_output_comes_before_maps_inside():
    model = make_tiny(side=32)
    model.graph.output.append(helper.make_tensor_value_info("conv", TensorProto.FLOAT, ["n", 6, 8, 8]))
    assert pick_map(model, None, "a")[1] == "conv"


def test_layers_that_are_none_or_no_map_are_refused(tmp_path):
    model = read_onnx(write_tiny(tmp_path / "a.onnx"))
    with pytest.raises(NetworkError, match=r"no layer 'third'; its outputs are 'scores'"):
        pick_map(model, "third", "a.onnx")
    with pytest.raises(NetworkError, match="where a map"):
        pick_map(model, "scores", "a.onnx")


def test_a_network_without_any_map_is_refused():
    weights = [numpy_helper.from_array(np.ones((3, 2), np.float32), "w")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [value("x", TensorProto.FLOAT, [1, 3])], [value("y", TensorProto.FLOAT, [1, 2])], weights,
    )  # fmt: skip
    model = helper.make_model(graph)
    with pytest.raises(NetworkError, match="no map"):
        pick_map(model, None, "a.onnx")
    with pytest.raises(NetworkError, match=r"shape \[1, 3\]"):
        find_input(model, "a.onnx")


@pytest.mark.parametrize("hostile", ["external", "constant"])
def test_weights_in_other_files_are_refused_wherever_they_hide(tmp_path, hostile):
    path = write_tiny(tmp_path / "a.onnx", hostile=hostile)
    with pytest.raises(NetworkError, match="another file"):
        read_onnx(path)


def test_files_that_are_no_network_are_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.onnx"):
        read_onnx(tmp_path / "a.onnx")
    content = make_tiny().SerializeToString()
    for name, data in (("text", b"hello, this is no network"), ("empty", b""), ("cut", content[: len(content) // 2])):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(NetworkError, match=name):
            read_onnx(tmp_path / name)


def test_operations_of_other_libraries_are_refused(tmp_path):
    model = make_tiny()
    model.opset_import.append(helper.make_opsetid("evil.ops", 1))
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(NetworkError, match=r"evil\.ops"):
        read_onnx(tmp_path / "a.onnx")


def test_shapes_that_do_not_fit_are_refused():
    model = make_tiny(side=32)
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros((5, 2), np.float32), "dense"))
    with pytest.raises(NetworkError, match="shapes that do not fit"):
        pick_map(model, None, "a.onnx")


def test_the_input_must_be_images():
    assert find_input(make_tiny(), "a") == ("images", (None, None))
    assert find_input(make_tiny(side=32), "a") == ("images", (32, 32))
    with pytest.raises(NetworkError, match="1 or n, 3, H, W"):
        find_input(make_tiny(n_images=8), "a")
    two = make_tiny()
    two.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    with pytest.raises(NetworkError, match="2 inputs"):
        find_input(two, "a")
