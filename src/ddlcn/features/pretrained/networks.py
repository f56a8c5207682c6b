"""The networks that can be asked for, ready to run: the packaged one, an ONNX file, a torch module.

The packaged network is built once, checked against a known output, and kept as ONNX in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from ddlcn.features.pretrained import efficientnet
from ddlcn.features.pretrained.onnx_file import NetworkError, find_input, pick_map, read_onnx

Array = NDArray[Any]

PACKAGED = efficientnet.NAME
# Counts the ways in which the packaged network was built: a new one is a new file in the cache.
BUILD = 1
# Values of 0 to 255 to what foreign networks mostly see: ImageNet's mean and deviation, per colour.
IMAGENET_MEAN, IMAGENET_SCALE = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
# Colours that rise by 1 from row to row, by 2 and by 3 from column to column, modulo 256, give these five largest of
# the packaged network's 1,000 outputs; computed with torch from the same weights.
KNOWN_SIDE = 224
KNOWN_TOP = ((418, 6.817), (644, 5.922), (885, 5.534), (604, 5.153), (470, 4.846))


@dataclass(frozen=True)
class NetworkMap:
    """A network that gives a map.

    Attributes
    ----------
    name, sha256 : str
        Which network; the hash is of the weights' file. Both are written into model files.
    layer : str
        Which of its maps.
    run : function of images (1, 3, H, W), float32
        Returns the map (channels, h, w), and the responses (s, h, w) whose mean describes the whole image.
    mean, scale : ndarrays (3,)
        What a colour x of 0 to 255 becomes: (x - mean) / scale.
    side : int or None
        The size of images, where the network takes no other.
    """

    name: str
    sha256: str
    layer: str
    run: Any
    mean: Array
    scale: Array
    side: int | None


def open_network(network: Any, layer: str | None) -> NetworkMap:
    """A network by its name, by the path of an .onnx file, or a torch module.

    Raises
    ------
    ModuleNotFoundError
        If a package is missing; the message names the command that installs it.
    NetworkError
        If the file cannot be used.
    """
    if isinstance(network, str | os.PathLike):
        if str(network) == PACKAGED:
            return _open_packaged(layer)
        path = Path(network)
        state = path.stat() if path.is_file() else None
        return _open_file(path, layer, state and (state.st_mtime_ns, state.st_size))
    if callable(network):
        return _wrap_module(network)
    raise ValueError(
        f"network must be {PACKAGED!r}, the path of an .onnx file, or a torch module that returns a map; "
        f"got {network!r}"
    )


def hash_network(network: Any) -> str:
    """The sha256 of a network's weights, without opening it; "" for a torch module."""
    if not isinstance(network, str | os.PathLike):
        return ""
    path = efficientnet.find_weights() if str(network) == PACKAGED else Path(network)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _open_packaged(layer: str | None) -> NetworkMap:
    sha256 = hash_network(PACKAGED)
    path = _keep_packaged(sha256)
    mean, scale = (np.full(3, value, np.float32) for value in (efficientnet.MEAN, efficientnet.SCALE))
    session = _start(path.read_bytes(), PACKAGED)
    layer = layer or f"block{efficientnet.N_BLOCKS - 1}"
    if layer not in efficientnet.MAPS:
        raise NetworkError(f"{PACKAGED} has no layer {layer!r}; it has {', '.join(efficientnet.MAPS)}")

    def run(images: Array) -> tuple[Array, Array]:
        found, head = session.run([layer, "head"], {"images": images})
        return found[0], head[0]

    return NetworkMap(PACKAGED, sha256, layer, run, mean, scale, None)


def _keep_packaged(sha256: str) -> Path:
    """The packaged network's ONNX file in the user's cache; built and checked if it is not there, or is damaged."""
    _need("onnx")
    folder = user_cache_path("ddlcn") / "networks"
    path = folder / f"{PACKAGED}-{BUILD}-{sha256[:16]}.onnx"
    mark = path.with_suffix(".sha256")
    if path.is_file() and mark.is_file() and mark.read_text() == hashlib.sha256(path.read_bytes()).hexdigest():
        return path
    content = efficientnet.build_efficientnet(efficientnet.find_weights())
    _check_known(content)
    folder.mkdir(parents=True, exist_ok=True)
    for goal, data in ((path, content), (mark, hashlib.sha256(content).hexdigest().encode())):
        beside = goal.with_name(f".{goal.name}.{os.getpid()}")  # moved there when complete: two may build at once
        beside.write_bytes(data)
        os.replace(beside, goal)
    return path


def make_known_image() -> Array:
    """The picture (1, 3, H, W) whose output is known, in colours of 0 to 255."""
    rows, columns = np.mgrid[:KNOWN_SIDE, :KNOWN_SIDE]
    return np.stack([rows % 256, 2 * columns % 256, (3 * columns + rows) % 256])[None].astype(np.float32)


def _check_known(content: bytes) -> None:
    images = (make_known_image() - np.float32(efficientnet.MEAN)) / np.float32(efficientnet.SCALE)
    (logits,) = _start(content, PACKAGED).run(["logits"], {"images": images})
    for index, value in KNOWN_TOP:
        if abs(logits[0, index] - value) > 1e-2:
            raise NetworkError(
                f"{PACKAGED} was built, but its output {index} on a known picture is {logits[0, index]:.3f} where "
                f"{value:.3f} is right: install the package's weights again, and tell us your onnxruntime version"
            )


@lru_cache(maxsize=4)
def _open_file(path: Path, layer: str | None, _state: Any) -> NetworkMap:
    _need("onnx")
    model = read_onnx(path)
    entrance, (height, width) = find_input(model, str(path))
    if height != width:
        raise NetworkError(f"{path} takes images of {height} x {width}: only square ones can be given")
    content, layer = pick_map(model, layer, str(path))
    session = _start(content, str(path))

    def run(images: Array) -> tuple[Array, Array]:
        try:
            (found,) = session.run([layer], {entrance: images})
        except Exception as error:  # onnxruntime has a class for every code, of no common name
            raise NetworkError(f"{path} cannot take images of shape {images.shape}: {_first_line(error)}") from None
        return _check_map(found, str(path))

    mean, scale = (np.array(values, np.float32) for values in (IMAGENET_MEAN, IMAGENET_SCALE))
    return NetworkMap(str(path), hash_network(path), layer, run, mean, scale, height)


def _wrap_module(module: Any) -> NetworkMap:
    """A torch module, or any function of a torch tensor (1, 3, H, W) that returns a map (1, channels, h, w)."""
    import torch

    if hasattr(module, "eval"):
        module.eval()

    def run(images: Array) -> tuple[Array, Array]:
        with torch.inference_mode():
            found = module(torch.from_numpy(images))
        return _check_map(found.float().cpu().numpy(), type(module).__name__)

    mean, scale = (np.array(values, np.float32) for values in (IMAGENET_MEAN, IMAGENET_SCALE))
    return NetworkMap(type(module).__name__, "", "", run, mean, scale, None)


def _check_map(found: Array, called: str) -> tuple[Array, Array]:
    """The map (channels, h, w) of one image, and its positive part: what the whole image is described by."""
    if found.ndim != 4 or len(found) != 1 or 0 in found.shape:
        raise NetworkError(f"{called} gave a result of shape {found.shape} where a map (1, channels, h, w) is needed")
    if not np.isfinite(found).all():
        raise NetworkError(f"{called} gave numbers that are not finite: check how it wants its images (mean, scale)")
    found = np.asarray(found[0], np.float32)
    return found, np.maximum(found, 0)


def _start(content: bytes, called: str) -> Any:
    _need("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread an image: `map_threads` has an image in every thread, and two pools would fight.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise NetworkError(f"{called} cannot be run: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _need(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise ModuleNotFoundError(f"pretrained networks need {package}: pip install 'ddlcn[cnn]'")
