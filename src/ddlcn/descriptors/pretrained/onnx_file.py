"""ONNX files from anywhere: looked at before they are run, and the map that they shall give picked.

In: the bytes of a file. Out: bytes of a network with the wanted outputs. A file may name other files for its weights
(a path to anything on the disk), functions of libraries that are not here, or shapes that are no map of an image: all
are refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Domains of operations that onnxruntime itself has.
KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
# A network larger than this is no file of ONNX (protobuf's own limit).
MAX_BYTES = 2_000_000_000


class NetworkError(ValueError):
    """The network cannot be used; the message says why."""


def read_onnx(path: Path) -> Any:
    """The network in a file as an `onnx.ModelProto`, whole and free of references to other files.

    Raises
    ------
    NetworkError
        If the file is no network, is damaged, or reaches for anything outside itself.
    """
    import onnx
    from onnx import checker

    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the path of an .onnx file")
    if path.stat().st_size > MAX_BYTES:
        raise NetworkError(f"{path} has {path.stat().st_size / 1e9:.1f} GB: networks of up to 2 GB can be read")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception:  # of protobuf, which has several
        raise NetworkError(f"{path} is not an ONNX file, or is damaged") from None
    if not model.graph.node:
        raise NetworkError(f"{path} is not an ONNX file, or is empty: it has no operations")
    for tensor in _walk_tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise NetworkError(
                f"{path} keeps weights in another file ({tensor.name!r}), which is not read: save it with all its "
                f"weights inside (onnx.save(model, path, save_as_external_data=False))"
            )
    for domain in sorted({each.domain for each in model.opset_import}):
        if domain not in KNOWN_DOMAINS:
            raise NetworkError(f"{path} uses operations of {domain!r}, which are not part of ONNX")
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        raise NetworkError(f"{path} is not a valid network: {str(error).splitlines()[0]}") from None
    return model


def pick_map(model: Any, layer: str | None, called: str) -> tuple[bytes, str]:
    """The network with one more output if need be, and the name of the output that is the map (n, channels, h, w).

    Parameters
    ----------
    model : onnx.ModelProto
    layer : str, optional
        The name of an output, of any value inside, or of an operation (its first output). None: the last value that
        is a map with more than one position, an output of the network if there is one.
    called : str
        For messages.
    """
    from onnx import TensorProto, helper, shape_inference

    shapes = {}
    try:
        inferred = shape_inference.infer_shapes(model, strict_mode=True)
    except shape_inference.InferenceError as error:
        raise NetworkError(f"{called} has shapes that do not fit: {str(error).splitlines()[0]}") from None
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        if value.type.tensor_type.HasField("shape"):
            shapes[value.name] = [d.dim_value or None for d in value.type.tensor_type.shape.dim]
    outputs = [value.name for value in model.graph.output]
    made = [name for node in model.graph.node for name in node.output if name]
    if layer is None:
        maps = [name for name in made if len(shapes.get(name, ())) == 4 and shapes[name][2] != 1 and shapes[name][1]]
        if not maps:
            raise NetworkError(f"{called} has no map of positions (n, channels, h, w) inside: name one with layer=...")
        own = [name for name in maps if name in outputs]
        layer = (own or maps)[-1]
    elif layer not in made:
        of_node = [node.output[0] for node in model.graph.node if node.name == layer]
        if not of_node:
            near = ", ".join(repr(name) for name in outputs)
            raise NetworkError(f"{called} has no layer {layer!r}; its outputs are {near}")
        layer = of_node[0]
    if layer in shapes and len(shapes[layer]) != 4:
        raise NetworkError(
            f"layer {layer!r} of {called} has shape {shapes[layer]} where a map (n, channels, h, w) is needed"
        )
    if layer not in outputs:
        model.graph.output.append(helper.make_tensor_value_info(layer, TensorProto.FLOAT, shapes.get(layer)))
    content: bytes = model.SerializeToString()
    return content, layer


def find_input(model: Any, called: str) -> tuple[str, tuple[int | None, int | None]]:
    """The name of the input (n, 3, H, W), and H and W where they are fixed.

    Raises
    ------
    NetworkError
        If it has another shape, or there are several.
    """
    weights = {each.name for each in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    if len(inputs) != 1:
        raise NetworkError(f"{called} has {len(inputs)} inputs where one, images (n, 3, H, W), is needed")
    dims = [d.dim_value or None for d in inputs[0].type.tensor_type.shape.dim]
    if len(dims) != 4 or dims[1] not in (3, None) or dims[0] not in (1, None):
        raise NetworkError(f"{called} has an input of shape {dims} where images (1 or n, 3, H, W) are needed")
    return inputs[0].name, (dims[2], dims[3])


def _walk_tensors(message: Any) -> Iterator[Any]:
    """All tensors anywhere inside a protobuf message: weights, constants, in branches and loops and functions too."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        parts = [value] if hasattr(value, "DESCRIPTOR") else value
        for part in parts:
            yield from _walk_tensors(part)
