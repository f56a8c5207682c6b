"""onnxruntime: the one place that imports it, and sessions that suit us.

onnxruntime keeps a device id in the user's cache and reports to its maker, unless it is told before its import not to.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from ddlcn.descriptors.pretrained.onnx_file import NetworkError


def import_onnxruntime() -> Any:
    """The module, with its telemetry off: nothing leaves the machine.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message names the command that installs it.
    """
    need_package("onnxruntime")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read once, at import
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for a program that had imported it before us
    return onnxruntime


def start_session(content: bytes, called: str) -> Any:
    """A session that runs a network.

    Parameters
    ----------
    content : bytes
        An ONNX model, with its weights.
    called : str
        What messages call it.

    Raises
    ------
    NetworkError
        If onnxruntime cannot run it.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    # One thread an image: `map_threads` has an image in every thread, and two pools would fight.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for every code, of no common name
        raise NetworkError(f"{called} cannot be run: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """What an error says, without the lines that only a developer of onnxruntime could use."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def need_package(package: str) -> None:
    """Raise ModuleNotFoundError, with the command that helps, where a package is not installed."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(f"pretrained networks need {package}: pip install 'ddlcn[cnn]'")
