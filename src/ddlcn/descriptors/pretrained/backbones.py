"""The networks that can be asked for, ready to run: the packaged one, an ONNX file, a torch module."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors.pretrained import efficientnet, packaged
from ddlcn.descriptors.pretrained.onnx_file import NetworkError, find_input, pick_map, read_onnx
from ddlcn.descriptors.pretrained.runtime import first_line, need_package, start_session

Array = NDArray[Any]

PACKAGED = packaged.NAME
# Values of 0 to 255 to what foreign networks mostly see: ImageNet's mean and deviation, per colour.
IMAGENET_MEAN, IMAGENET_SCALE = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


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
    layer = layer or f"block{efficientnet.N_BLOCKS - 1}"
    if layer not in efficientnet.MAPS:
        raise NetworkError(f"{PACKAGED} has no layer {layer!r}; it has {', '.join(efficientnet.MAPS)}")
    session = packaged.open_session(sha256)
    mean, scale = (np.full(3, value, np.float32) for value in (efficientnet.MEAN, efficientnet.SCALE))

    def run(images: Array) -> tuple[Array, Array]:
        found, head = session.run([layer, "head"], {"images": images})
        return found[0], head[0]

    return NetworkMap(PACKAGED, sha256, layer, run, mean, scale, None)


@lru_cache(maxsize=4)
def _open_file(path: Path, layer: str | None, _state: Any) -> NetworkMap:
    need_package("onnx")
    model = read_onnx(path)
    entrance, (height, width) = find_input(model, str(path))
    if height != width:
        raise NetworkError(f"{path} takes images of {height} x {width}: only square ones can be given")
    content, layer = pick_map(model, layer, str(path))
    session = start_session(content, str(path))

    def run(images: Array) -> tuple[Array, Array]:
        try:
            (found,) = session.run([layer], {entrance: images})
        except Exception as error:
            raise NetworkError(f"{path} cannot take images of shape {images.shape}: {first_line(error)}") from None
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
